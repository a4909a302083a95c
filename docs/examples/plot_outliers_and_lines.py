"""
Lines through points that lie
=============================

A few wrong rows move a least-squares line as far as they like. Four other objectives bound what a row can do, and
differ in how many wrong rows they stand and in what they cost when there are none.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
n, slope = 120, 1.5


def table(wrong: float, at_the_end: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which a share is wrong: anywhere, or all at one end, where they have leverage."""
    x = np.sort(rng.uniform(0, 10, n))
    y = slope * x + rng.normal(size=n)
    k = int(wrong * n)
    rows = np.arange(n - k, n) if at_the_end else rng.choice(n, k, replace=False)
    y[rows] = 3 * rng.normal(size=k) - 10
    return x[:, None], y


models = {
    "least squares": ep.LinearRegression(),
    "Huber": ep.HuberRegressor(),
    "least absolute deviations": ep.QuantileRegressor(alpha=0),
    "Theil-Sen": ep.TheilSenRegressor(random_state=0),
    "RANSAC": ep.RANSACRegressor(random_state=0),
}

# %%
# The slope that each finds, as more and more rows are wrong: 1.5 is the truth.

shares = np.arange(0, 0.45, 0.05)
slopes: dict[bool, dict[str, list[float]]] = {}
for at_the_end in (False, True):
    tables = [table(share, at_the_end) for share in shares]
    slopes[at_the_end] = {
        name: [np.ravel(np.diff(model.fit(X, y).predict([[0.0], [1.0]])))[0] for X, y in tables]
        for name, model in models.items()
    }

# %%
# Left, the lines where a tenth of the rows at one end is wrong; then the slopes, for wrong rows anywhere or at one end.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
for ax, (at_the_end, found) in zip(axes[1:], slopes.items(), strict=True):
    for name, values in found.items():
        ax.plot(shares, values, marker="o", ms=3, label=name)
    ax.axhline(slope, color="0.4", lw=1, ls=":")
    ax.set(xlabel="share of wrong rows", ylabel="slope", title="at one end" if at_the_end else "anywhere")
axes[2].legend(fontsize=8)
X, y = table(0.1, True)
axes[0].plot(X[:, 0], y, ".", color="0.5", ms=4)
for name, model in models.items():
    axes[0].plot([0, 10], model.fit(X, y).predict([[0.0], [10.0]]), label=name)
axes[0].set(xlabel="x", ylabel="y", title="a tenth of the rows")
plt.show()
