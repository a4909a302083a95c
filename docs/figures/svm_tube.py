"""The tube of support vector regression, and the region of a one-class machine."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(1)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")

x = np.sort(rng.uniform(0, 6, 80))
y = np.sin(1.5 * x) + 0.3 * x + 0.15 * rng.normal(size=80)
y[[20, 50]] += (1.2, -1.3)
model = ep.SVR(C=10.0, epsilon=0.25, gamma=0.8).fit(x[:, None], y)
grid = np.linspace(0, 6, 400)
f = model.predict(grid[:, None])
left.fill_between(grid, f - 0.25, f + 0.25, color="C0", alpha=0.15, lw=0)
left.plot(grid, f, color="C0")
left.plot(x, y, "o", ms=3.5, color="0.45")
left.scatter(x[model.support_], y[model.support_], s=60, facecolors="none", edgecolors="k", lw=0.9)
left.set(title=f"SVR: {len(model.support_)} of 80 rows are on or outside the tube", xlabel="$x$", ylabel="$y$")

X = np.vstack(
    [rng.normal((-2, 0), (0.5, 0.8), (120, 2)), rng.normal((1.5, 1), 0.6, (120, 2)), rng.uniform(-4, 4, (10, 2))]
)
novelty = ep.OneClassSVM(nu=0.08, gamma=0.2).fit(X)
a, b = np.meshgrid(np.linspace(-4.5, 4.5, 250), np.linspace(-4.5, 4.5, 250))
values = novelty.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
right.contourf(a, b, values, levels=[0, 1e9], colors=["C2"], alpha=0.15)
right.contour(a, b, values, levels=[0], colors="C2")
inside = novelty.predict(X) > 0
right.plot(*X[inside].T, "o", ms=3, color="0.45")
right.plot(*X[~inside].T, "x", ms=6, color="C5", mew=1.5)
right.set(title=f"OneClassSVM: {np.mean(~inside):.1%} of the rows are outside, nu = 8%", xlabel="$x_1$", ylabel="$x_2$")
right.grid(False)
plt.show()
