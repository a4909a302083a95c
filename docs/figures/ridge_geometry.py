"""Ridge in two dimensions: the loss, the penalty, the path between them; and how each direction is shrunk."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(3)
latent = rng.normal(size=60)
X = np.column_stack([latent + 0.35 * rng.normal(size=60), latent + 0.35 * rng.normal(size=60)])
X -= X.mean(axis=0)
y = X @ [2.2, 0.2] + rng.normal(size=60)
y -= y.mean()
alphas = np.logspace(-2, 4, 60)
path = np.array([ep.Ridge(alpha=a, fit_intercept=False).fit(X, y).coef_ for a in alphas])
chosen = 20.0
w = ep.Ridge(alpha=chosen, fit_intercept=False).fit(X, y).coef_
ols = ep.LinearRegression(fit_intercept=False).fit(X, y).coef_

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4), layout="constrained", width_ratios=[1, 1.1])
a, b = np.meshgrid(np.linspace(-0.6, 3.2, 200), np.linspace(-1.2, 2.2, 200))
grid = np.stack([a.ravel(), b.ravel()])
loss = ((y[:, None] - X @ grid) ** 2).sum(axis=0).reshape(a.shape) / 2
at_w = ((y - X @ w) ** 2).sum() / 2
least = ((y - X @ ols) ** 2).sum() / 2
left.contour(a, b, loss, levels=least + (at_w - least) * np.array([0.25, 1, 3, 8]), colors="0.6", linewidths=1)
angle = np.linspace(0, 2 * np.pi, 200)
radius = np.linalg.norm(w)
left.fill(radius * np.cos(angle), radius * np.sin(angle), color="#56B4E9", alpha=0.25)
left.plot(*path.T, color="C0", lw=2, label="path as alpha grows")
left.plot(*ols, "o", color="k", label="least squares")
left.plot(*w, "D", color="C5", label=f"ridge, alpha = {chosen:g}")
left.axhline(0, color="k", lw=0.6)
left.axvline(0, color="k", lw=0.6)
left.set(
    xlabel="$w_1$",
    ylabel="$w_2$",
    xlim=(-0.6, 3.2),
    ylim=(-1.2, 2.2),
    aspect="equal",
    title="contours of the loss touch the ball $\\|w\\| \\leq r$",
)
left.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")

for d, colour, label in zip(np.linalg.svd(X, compute_uv=False), ("C0", "C1"), ("large", "small"), strict=True):
    right.semilogx(alphas, d**2 / (d**2 + alphas), color=colour, label=f"{label} singular value, $d$ = {d:.1f}")
right.axvline(chosen, ymin=0.17, color="0.4", lw=0.8, ls=":")
right.set(xlabel="alpha", ylabel="kept part $d^2 / (d^2 + \\alpha)$", title="little variance: shrunk first")
right.legend(loc="lower left")
plt.show()
