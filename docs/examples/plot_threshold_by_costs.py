"""
The threshold is a decision
===========================

A classifier gives probabilities; what to do at which probability follows from what errors cost. One half is right
only where both errors cost the same, and with rare classes it is often the worst of all choices.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 5))
z = -4.2 + X @ [1.6, 1.0, -0.8, 0.0, 0.0]
y = rng.random(6000) < 1 / (1 + np.exp(-z))
print(f"{y.mean():.1%} of the rows are of the rare class")

# %%
# A missed case costs twenty times a false alarm. The costs are compared on rows that the models did not see, and the
# threshold found there is not far from theory's: an alarm pays where p > 1 / (1 + 20).

found = ep.diagnose.threshold(ep.LogisticRegression(), X, y, metric="cost", costs=(1.0, 20.0))
print(found)
print(f"by theory {1 / 21:.3f}")

# %%
# The curve, and the two errors at every threshold.

p = np.empty(len(y))
for fold in range(5):
    held = np.arange(len(y)) % 5 == fold
    p[held] = ep.LogisticRegression().fit(X[~held], y[~held]).predict_proba(X[held])[:, 1]
grid = np.geomspace(0.003, 0.9, 150)
missed = np.array([np.sum(y & (p < t)) for t in grid])
alarms = np.array([np.sum(~y & (p >= t)) for t in grid])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
left.semilogx(grid, missed, label="missed cases")
left.semilogx(grid, alarms, label="false alarms")
left.set(xlabel="threshold", ylabel="rows", yscale="log", title="two errors")
left.legend()
for ratio in (1, 5, 20):
    cost = (ratio * missed + alarms) / len(y)
    right.semilogx(grid, cost, label=f"a miss costs {ratio}")
    right.plot(grid[cost.argmin()], cost.min(), "o", color=right.lines[-1].get_color(), ms=5)
right.axvline(0.5, color="0.5", lw=1, ls=":")
right.set(xlabel="threshold", ylabel="cost per row", title="what they cost", ylim=(0, 0.5))
right.legend()
plt.show()
