"""
One optimum, nine roads to it
=============================

Every algorithm of the course can be asked for by name. They differ in the number of passes over the data, not in where
they end: each stops when its certificate holds, that is when the objective is proven to be within ``tol`` of its
minimum.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import epicycle as ep

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# Fit once far beyond the usual tolerance: this is the minimum to which the others are compared.

best = ep.LogisticRegression(solver="newton", tol=1e-13).fit(X, y)
minimum = best.history_.objective.min()
print(best.certificate_)

# %%
# Then fit with each solver. ``history_`` has one row for each iteration; for the stochastic solvers an iteration is an
# epoch, a pass over all rows in mini-batches.

groups = {
    "whole gradients": ["gd-ladder", "gd", "cg"],
    "mini-batches, one point per epoch": ["sgd", "momentum", "adam"],
    "curvature": ["lbfgs", "bfgs", "newton"],
}
fits = {
    solver: ep.LogisticRegression(solver=solver, random_state=0).fit(X, y)
    for solvers in groups.values()
    for solver in solvers
}
for solver, model in fits.items():
    off = np.abs(model.coef_ - best.coef_).max()
    proof = f"{model.certificate_.kind} {model.certificate_.value:.0e}"
    print(f"{solver:>10}: {model.n_iter_[0]:3d} iterations, coefficients within {off:.0e}, {proof}")

# %%
# Both axes are logarithmic. Plain gradient descent with the best fixed step needs hundreds of iterations; the spectral
# steps of ``"gd"`` and conjugate gradients need tens; Newton's method needs eight, because near the end the number of
# correct digits doubles each time.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (title, solvers) in zip(panels, groups.items(), strict=True):
    for solver in solvers:
        objective = fits[solver].history_.objective
        excess = np.maximum(objective / minimum - 1, 1e-16)
        iteration = np.arange(1, len(objective) + 1)
        (line,) = ax.semilogy(iteration, excess, label=solver)
        ax.plot(iteration[-1], excess[-1], "o", ms=5, color=line.get_color())
    ax.axhline(1e-8, color="0.4", lw=0.8, ls=":")
    ax.set(title=title, xlabel="iteration", xscale="log")
    ax.legend(loc="lower left")
panels[0].set_ylabel("distance from the minimum, relative")
panels[0].annotate("tol", (1, 1e-8), (2, 3), textcoords="offset points", color="0.4")
plt.show()
