"""Variational mixtures: weights of components that are not needed vanish, by prior, and the bound that never falls."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(4)
means = np.array([[-4.0, 0.0], [0.0, 3.0], [4.0, 0.0]])
X = np.concatenate([m + rng.normal(size=(120, 2)) @ rng.normal(scale=0.7, size=(2, 2)) for m in means])
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.5), layout="constrained")
options = {"n_components": 10, "n_init": 3, "random_state": 0, "max_iter": 2000, "tol": 1e-6}
model = ep.BayesianGaussianMixture(weight_concentration_prior=0.01, **options).fit(X)
axes[0].scatter(*X.T, s=6, c=[f"C{a}" for a in model.predict(X)])
angle = np.linspace(0, 2 * np.pi, 100)
for a in np.flatnonzero(model.weights_ > 0.01):
    circle = model.means_[a][:, None] + 2 * np.linalg.cholesky(model.covariances_[a]) @ [np.cos(angle), np.sin(angle)]
    axes[0].plot(*circle, color=f"C{a}")
axes[0].set(title="ten components were allowed", xticks=[], yticks=[])

for kind in ("dirichlet_process", "dirichlet_distribution"):
    found = ep.BayesianGaussianMixture(weight_concentration_prior_type=kind, weight_concentration_prior=1.0, **options)
    axes[1].semilogy(range(1, 11), np.sort(found.fit(X).weights_)[::-1], marker="o", ms=4, label=kind.replace("_", " "))
axes[1].set(title="weights at concentration 1", xlabel="component, by weight", ylabel="weight")
axes[1].legend(frameon=False)

history = model.history_
for start in range(3):
    bound = history.log_likelihood[history.start == start]
    axes[2].plot(range(1, len(bound) + 1), bound, label=f"start {start + 1}")
axes[2].set(title="bound on the evidence", xlabel="step", xscale="log")
axes[2].legend(frameon=False)
plt.show()
