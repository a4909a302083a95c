"""
The learning-rate ladder, and divergence
========================================

Gradient descent with a fixed step is the simplest solver and the easiest to get wrong: a step that is too small takes
for ever, one that is too large diverges. The usual advice is to try 0.001, 0.003, 0.01, ... and to keep the largest
step that still descends. ``solver="gd-ladder"`` does just that.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import epicycle as ep
from epicycle import optim

X, y = load_diabetes(return_X_y=True)
X = X * np.sqrt(len(X))  # columns of unit variance
y = (y - y.mean()) / y.std()
n = len(y)

# %%
# The objective as a plain function, the mean of squares with a small ridge, and its ladder: ten steps of descent from
# zero on each rung.


def value_and_gradient(w):
    r = X @ w - y
    return float(r @ r / (2 * n) + 0.005 * w @ w), X.T @ r / n + 0.01 * w


objective = optim.FunctionObjective(value_and_gradient, size=X.shape[1], strong_convexity=0.01, quadratic=True)
ladder = optim.learning_rate_ladder(objective, np.zeros(X.shape[1]))
for step, value, descends in zip(ladder.steps, ladder.values, ladder.descends, strict=True):
    print(f"step {step:<6g} objective after a short run {value:8.5f}  {'descends' if descends else 'does not'}")
print("kept:", ladder.step)

# %%
# The curvature decides: gradient descent on a quadratic converges for steps below 2 / L, where L is the largest
# eigenvalue of the Hessian.

largest = np.linalg.eigvalsh(X.T @ X / n + 0.01 * np.eye(X.shape[1]))[-1]
print(f"2 / L = {2 / largest:.3f}")

# %%
# A step above that limit is not returned as if it were a result. The solver sees that the objective grows, says so, and
# gives back the best point that it had.

steps = [0.003, 0.03, 0.3, 1.1 * 2 / largest]
runs = {step: optim.gradient_descent(objective, np.zeros(10), step=step, max_iter=300, tol=1e-12) for step in steps}
print(runs[steps[-1]].reason, "-", runs[steps[-1]].message)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.7), layout="constrained")
minimum = optim.newton(
    optim.FunctionObjective(
        value_and_gradient, 10, hessian=lambda w: X.T @ X / n + 0.01 * np.eye(10), strong_convexity=0.01
    ),
    np.zeros(10),
).value
begin = value_and_gradient(np.zeros(10))[0]
reached = np.array(ladder.values) - minimum
left.loglog(ladder.steps, reached, "-", color="0.6", zorder=1)
for descends, label, colour, marker in ((True, "descends", "C0", "o"), (False, "does not", "C1", "X")):
    here = np.array(ladder.descends) == descends
    left.scatter(np.array(ladder.steps)[here], reached[here], color=colour, marker=marker, s=45, label=label)
left.axvline(2 / largest, color="0.4", lw=0.8, ls=":")
left.annotate(
    "2 / L", (2 / largest, 0.03), (4, 0), xycoords=("data", "axes fraction"), textcoords="offset points", color="0.4"
)
left.set(xlabel="step", ylabel="objective above its minimum", title="after ten steps on each rung")
left.legend(title="a short run")
for step, run in runs.items():
    excess = run.history.objective - minimum
    note = ", diverges" if run.reason == "diverged" else ""
    right.semilogy(np.arange(1, len(excess) + 1), excess, label=f"{step:.3g}{note}")
right.set(xlabel="iteration", xscale="log", title="gradient descent with a fixed step", ylim=(3e-6, 3))
right.legend(title="step", loc="lower left")
plt.show()

# %%
# The same through an estimator: a step that diverges gives a warning that names the cause and the remedy, and a
# certificate that does not hold.

model = ep.LinearRegression(solver="gd", solver_options={"step": 1.0})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X, y)
print(caught[0].message)
print("converged:", model.converged_)
