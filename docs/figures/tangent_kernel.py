"""Tangent kernels of random networks and their limit, and how fast they come to it."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.kernel import NeuralTangent
from epicycle.nets import tangent_kernel
from epicycle.nets.examples import wide_network

angles = np.linspace(0, np.pi, 40)
X = np.column_stack([np.cos(angles), np.sin(angles)])
limit = NeuralTangent(depth=2)(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.5), layout="constrained")
for width, colour in ((16, "C1"), (1024, "C0")):
    for seed in range(5):
        kernel = tangent_kernel(wide_network(2, width, depth=2, random_state=seed), X)
        left.plot(angles, kernel[0], color=colour, lw=0.9, alpha=0.8, label=f"{width} units" if seed == 0 else None)
left.plot(angles, limit[0], color="0.2", ls="--", label="infinitely many")
left.set(xlabel="angle between two rows", ylabel="tangent kernel", ylim=(0, None))
left.legend()

widths = [4, 8, 16, 32, 64, 128, 256]
few, limit = X[::4], limit[::4, ::4]
distances = [
    [np.linalg.norm(tangent_kernel(wide_network(2, m, depth=2, random_state=seed), few) - limit) for seed in range(24)]
    for m in widths
]
distances = np.sqrt(np.mean(np.square(distances), axis=1)) / np.linalg.norm(limit)
root = np.exp(np.mean(np.log(distances * np.sqrt(widths)))) / np.sqrt(widths)
right.loglog(widths, distances, "o-", label="mean of 24 networks")
right.loglog(widths, root, color="0.5", ls=":", label="width$^{-1/2}$")
right.set(xlabel="units of a layer", ylabel="distance from the limit")
right.legend()
plt.show()
