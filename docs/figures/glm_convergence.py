"""Distance from the optimum, iteration by iteration, of four solvers on a gamma regression."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 8)) @ np.diag(np.geomspace(0.5, 2, 8))
mu = np.exp(0.3 + X @ rng.normal(size=8) / 6)
y = rng.gamma(1.5, mu / 1.5)

best = ep.GeneralizedLinearModel("gamma", tol=1e-15).fit(X, y)
lowest = best.deviance_ / (2 * len(y))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
names = {"newton": "Newton", "irls": "IRLS (Fisher scoring)", "lbfgs": "L-BFGS", "gd": "gradient descent"}
for k, (solver, name) in enumerate(names.items()):
    with ep.config(on_nonconvergence="ignore"):
        options = {"precondition": False} if solver == "lbfgs" else None
        model = ep.GeneralizedLinearModel("gamma", solver=solver, solver_options=options, max_iter=40).fit(X, y)
    excess = np.maximum(model.history_.objective - lowest, 1e-16)
    left.semilogy(np.arange(1, len(excess) + 1), excess, "o-", color=f"C{k}", ms=3, label=name)
left.set(xlabel="iteration", ylabel="objective above its minimum", title="gamma family, log link", xlim=(0, 30))
left.legend()

grid = np.linspace(0, 3, 60)
x = rng.uniform(0, 3, size=400)
counts = rng.poisson(np.exp(-0.6 + 0.8 * x))
line = ep.GeneralizedLinearModel("poisson").fit(x[:, None], counts)
straight = ep.GeneralizedLinearModel("gaussian").fit(x[:, None], counts)
right.plot(x, counts + rng.uniform(-0.25, 0.25, size=400), ".", color="0.75", ms=3)
right.plot(grid, line.predict(grid[:, None]), color="C0", label="Poisson, log link")
right.plot(grid, straight.predict(grid[:, None]), "--", color="C1", label="Gaussian, identity link")
right.axhline(0, color="k", lw=0.6)
right.set(xlabel="x", ylabel="count", title="the mean of counts")
right.legend(loc="upper left")
plt.show()
