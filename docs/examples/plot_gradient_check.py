"""
A gradient with a planted error
===============================

The commonest mistake in writing a new model is a wrong gradient, and it rarely shows: the solver still descends, only
not to the minimum. ``optim.check_gradient`` compares the gradient that was programmed with differences of the function,
coordinate by coordinate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from epicycle import optim

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :12]
loss, penalty = optim.Logistic(), optim.L2(1.0)


def value(w):
    return float(loss.value(X @ w, y).sum() + penalty.value(w))


def right(w):
    return X.T @ loss.gradient(X @ w, y) + penalty.gradient(w)


# %%
# The planted error: the penalty is forgotten in one coordinate.


def wrong(w):
    g = right(w)
    g[4] -= w[4]
    return g


w = np.random.default_rng(0).normal(size=12)
print(optim.check_gradient(value, w, gradient=right))
check = optim.check_gradient(value, w, gradient=wrong)
print(check)

# %%
# Why not one difference with one step? Because no step suits every coordinate: large steps feel the curvature of the
# function, small ones the rounding of its values. The check climbs down a ladder of steps, extrapolates, and takes the
# rung that agrees best with its neighbours.

steps = np.logspace(-1, -13, 60)


def central_difference(j, h):
    e = np.zeros(12)
    e[j] = h
    return (value(w + e) - value(w - e)) / (2 * h)


figure, (left, middle) = plt.subplots(1, 2, figsize=(9.5, 3.7), layout="constrained", width_ratios=[1, 1.15])
for j, label in ((4, "coordinate 4, wrong gradient"), (3, "coordinate 3")):
    numeric = np.array([central_difference(j, h) for h in steps])
    error = np.abs(numeric - wrong(w)[j]) / np.abs(wrong(w)[j])
    left.loglog(steps, np.maximum(error, 1e-16), label=label, color="C1" if j == 4 else "C0")
left.axhline(1e-5, color="0.4", lw=0.8, ls=":")
left.annotate("rtol of the check", (1e-6, 1e-5), (0, 3), textcoords="offset points", color="0.4", ha="center")
left.set(xlabel="step of the difference", ylabel="relative disagreement", title="one coordinate, every step")
left.legend(loc="upper right", bbox_to_anchor=(1, 0.92))

numeric = np.array([central_difference(j, 1e-5) for j in range(12)])
place = np.arange(12)
middle.bar(place - 0.2, wrong(w), 0.4, label="programmed", color=["C1" if j in check.wrong else "C0" for j in place])
middle.bar(place + 0.2, numeric, 0.4, label="by differences", color="0.7")
for j in check.wrong:
    middle.annotate("found", (j, max(wrong(w)[j], numeric[j])), (0, 4), textcoords="offset points", ha="center")
middle.axhline(0, color="k", lw=0.6)
middle.set(xlabel="coordinate", ylabel="derivative", title="all coordinates", xticks=place)
middle.legend()
plt.show()

# %%
# What such an error does: the solver stops where the wrong gradient vanishes. The value is then above the minimum, and
# only the check tells.

good = optim.lbfgs(optim.FunctionObjective(lambda w: (value(w), right(w)), 12, strong_convexity=1.0), np.zeros(12))
print(f"minimum {good.value:.6f}, {good.certificate}")
bad = optim.lbfgs(optim.FunctionObjective(lambda w: (value(w), wrong(w)), 12), np.zeros(12), max_iter=200)
print(f"with the wrong gradient: {bad.value:.6f} ({bad.reason})")
