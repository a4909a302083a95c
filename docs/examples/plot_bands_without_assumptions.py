"""
Bands that hold what they promise
=================================

Nine rows in ten should be inside the band. A normal band of constant width misses where the noise grows; quantile
regression adapts, and conformal prediction makes the promise true for any model, with finitely many rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.sort(rng.uniform(0, 5, n))
    return x[:, None], np.sin(x) + (0.05 + 0.15 * x) * rng.standard_t(4, n)


X, y = draw(900)
rows = rng.permutation(900)
fit, held = np.sort(rows[:600]), np.sort(rows[600:])
X_new, y_new = draw(5000)

# %%
# Quantiles by boosting with the pinball loss; and the same, moved by the errors of rows that were held out: at least
# 90% of new rows are then inside, whatever the model is.

low, high = (
    ep.GradientBoostingRegressor(
        loss="quantile", quantile=q, n_estimators=60, max_leaf_nodes=6, min_samples_leaf=25, random_state=0
    ).fit(X[fit], y[fit])
    for q in (0.05, 0.95)
)
excess = np.maximum(low.predict(X[held]) - y[held], y[held] - high.predict(X[held]))
shift = np.sort(excess)[int(np.ceil(0.9 * (len(held) + 1))) - 1]
curve = ep.GradientBoostingRegressor(n_estimators=60, max_leaf_nodes=6, min_samples_leaf=25, random_state=0)
middle = curve.fit(X[fit], y[fit])
spread = 1.645 * np.std(y[fit] - middle.predict(X[fit]))

bands = {
    "constant width": lambda Z: (middle.predict(Z) - spread, middle.predict(Z) + spread),
    "quantiles": lambda Z: (low.predict(Z), high.predict(Z)),
    "quantiles, conformal": lambda Z: (low.predict(Z) - shift, high.predict(Z) + shift),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained", sharey=True)
grid = np.linspace(0, 5, 300)[:, None]
for ax, (name, band) in zip(axes, bands.items(), strict=True):
    a, b = band(X_new)
    inside = (y_new >= a) & (y_new <= b)
    ends = [inside[X_new[:, 0] < 1].mean(), inside[X_new[:, 0] > 4].mean()]
    print(f"{name:22} {inside.mean():.1%} of new rows; {ends[0]:.0%} at the left end, {ends[1]:.0%} at the right")
    ax.plot(X[fit, 0], y[fit], ".", color="0.7", ms=3)
    ax.fill_between(grid[:, 0], *band(grid), color="C0", alpha=0.3, lw=0)
    ax.set(xlabel="x", title=f"{name}: {inside.mean():.1%}", ylim=(-4, 4))
axes[0].set_ylabel("y")
plt.show()
