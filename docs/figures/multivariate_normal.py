"""A normal density with a conditional of it, and a singular one that lives on a line."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import MultivariateNormal

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
normal = MultivariateNormal([0.0, 1.0], [[2.0, 1.2], [1.2, 1.0]])
grid = np.stack(np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-2, 4, 121)), axis=-1)
left.contourf(grid[..., 0], grid[..., 1], normal.pdf(grid), levels=8, cmap="Blues")
known = 2.0
slice_at = normal.conditional([0], [known])
height = np.linspace(-2, 4, 200)
left.axvline(known, color="#D55E00", lw=1, ls="--")
left.plot(known + 1.4 * slice_at.pdf(height[:, None]), height, color="#D55E00", label="second given the first")
left.set(xlabel="first", ylabel="second", title="a density and a conditional")
left.legend(loc="lower right")

line = MultivariateNormal([0.0, 0.0], [[1.0, 0.5], [0.5, 0.25]])
cloud = MultivariateNormal([1.5, -0.5], [[0.6, 0.0], [0.0, 0.6]])
both = line.product(cloud).normal
ends = np.array([-2.5, 2.5])
right.plot(ends, ends / 2, color="#7F7F7F", lw=1, label="support of a singular covariance")
right.scatter(*line.sample(60, random_state=0).T, s=14, color="#0072B2", label="its draws")
right.contour(grid[..., 0], grid[..., 1], cloud.pdf(grid), levels=4, colors="#E69F00", linewidths=1)
right.plot(
    *(both.mean + np.outer([-1, 1], np.sqrt(both.variance))).T, color="#D55E00", lw=4, label="product, one deviation"
)
right.set(xlim=(-3, 4), ylim=(-2, 2), xlabel="first", ylabel="second", title="on a line")
right.legend(loc="upper left", fontsize=8)
plt.show()
