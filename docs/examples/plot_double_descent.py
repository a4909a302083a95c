"""
Double descent
==============

A network with more weights than rows fits every row, noise included, and may still predict well. The error on new rows
falls, rises to a peak where the network can just fit all rows, and falls again; gradient descent, which looks for the
shortest of all solutions, is the reason.
"""

# %%
# A hundred digits, threes and eights, a tenth of them with the wrong label. Only the last layer of each network is
# learnt, in closed form, as gradient descent from zero would end.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle.nets.examples import double_descent, minimum_norm

X, digit = load_digits(return_X_y=True)
X, y = X[np.isin(digit, (3, 8))] / 16, np.where(digit[np.isin(digit, (3, 8))] == 3, 1.0, -1.0)
rng = np.random.default_rng(0)
rows = rng.permutation(len(X))
train, test = rows[:100], rows[100:]
y_noisy = np.where(rng.random(len(y)) < 0.1, -y, y)
widths = [2, 5, 10, 20, 40, 60, 80, 90, 100, 110, 130, 170, 250, 500, 1000]
plain = double_descent(X[train], y_noisy[train], X[test], y[test], widths, n_networks=5)
penalised = double_descent(X[train], y_noisy[train], X[test], y[test], widths, alpha=1e-3, n_networks=5)
peak = widths[np.median(plain.test_error, axis=1).argmax()]
print(f"the largest error is that of {peak} units for {len(train)} rows")

# %%
# That descent comes to the shortest solution can be seen directly: of more columns than rows.
hidden = np.maximum(0, X[train[:40]] @ rng.normal(size=(64, 120)) / 8)
path = minimum_norm(hidden, y_noisy[train[:40]], tol=1e-7)
shortest = np.linalg.norm(path.solution)
print(f"after {path.n_steps} steps |w| = {path.norm[-1]:.6f}; the shortest solution has {shortest:.6f}")

# %%
# Left: errors by the number of units. Right: the way of gradient descent.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
left.axvline(len(train), color="0.6", ls=":", lw=1)
for errors, label, colour in (
    (plain.test_error, "new rows", "C0"),
    (penalised.test_error, "new rows, small penalty", "C2"),
    (plain.train_error, "rows of the fit", "C1"),
):
    left.plot(widths, np.median(errors, axis=1), "o-", ms=3, color=colour, label=label)
left.set(xscale="log", xlabel="units", ylabel="mean squared error", ylim=(0, 4))
left.annotate(" as many as rows", (len(train), 3.8), fontsize=8)
left.legend()
right.loglog(path.steps[1:], path.loss[1:], color="C1", label="loss")
right.loglog(path.steps[1:], path.distance[1:], color="C0", label="distance from the shortest solution")
right.set(xlabel="steps")
right.legend()
plt.show()
