"""Hidden Markov model: a series with a gap, posteriors of its states, and the number of states by BIC."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(3)
states = np.repeat([0, 1, 2, 1, 0, 2, 0], [40, 25, 30, 20, 45, 20, 40])
x = np.array([0.0, 2.5, -2.0])[states] + np.array([0.5, 0.8, 1.0])[states] * rng.normal(size=len(states))
x[80:96] = np.nan
X, time = x[:, None], np.arange(len(x))
model = ep.HiddenMarkovModel(3, n_init=6, random_state=0).fit(X)
order = np.argsort(model.means_[:, 0])
posterior = model.predict_proba(X)[:, order]
path = np.argsort(order)[model.predict(X)]

figure, axes = plt.subplot_mosaic(
    [["series", "bic"], ["posterior", "bic"]],
    figsize=(10.4, 4.2),
    width_ratios=(2.4, 1),
    height_ratios=(2, 1),
    layout="constrained",
)
series, below, bic = axes["series"], axes["posterior"], axes["bic"]
series.scatter(time, x, s=9, c=[f"C{k}" for k in path])
for k, mean in enumerate(model.means_[order, 0]):
    series.axhline(mean, color=f"C{k}", lw=1, alpha=0.6)
for ax in (series, below):
    ax.axvspan(79.5, 95.5, color="0.5", alpha=0.25, lw=0)
    ax.set(xlim=(0, len(x) - 1))
series.text(87.5, -3.9, "missing", ha="center", fontsize=9, color="0.3")
series.set(title="rows by the most probable path, and means of the states", xticklabels=[])
below.stackplot(time, posterior.T, colors=[f"C{k}" for k in range(3)], alpha=0.8)
below.set(ylim=(0, 1), xlabel="time step", ylabel="posterior")
counts = range(1, 7)
values = [ep.HiddenMarkovModel(k, n_init=4, random_state=0).fit(X).bic(X) for k in counts]
bic.plot(counts, values, marker="o", ms=4)
bic.set(title="BIC (smaller is better)", xlabel="number of states")
plt.show()
