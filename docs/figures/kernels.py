"""Kernels as pictures: their matrices on a line, and functions drawn at random from the space of each."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.kernel import NNGP, Gaussian, Linear, Matern, Periodic, Polynomial, RationalQuadratic

kernels = {
    "Gaussian": Gaussian(0.6),
    "Matern 1/2": Matern(0.6, nu=0.5),
    "Matern 5/2": Matern(0.6, nu=2.5),
    "rational\nquadratic": RationalQuadratic(0.3, alpha=0.3),
    "Periodic": Periodic(0.8, period=1.5),
    "Polynomial": Polynomial(3, gamma=0.6, c=0.5),
    "network,\n3 layers": NNGP(3, 1.8, 0.1),
    "Gaussian *\nPeriodic": Gaussian(2.0) * Periodic(0.7, period=1.0),
    "Linear +\nMatern 3/2": 0.5 * Linear() + 0.3 * Matern(0.5, nu=1.5),
}
x = np.linspace(-3, 3, 161)[:, None]
figure, axes = plt.subplots(2, len(kernels), figsize=(12.4, 3.4), layout="constrained", height_ratios=[1, 1])
for (name, kernel), above, below in zip(kernels.items(), *axes, strict=True):
    K = kernel(x)
    above.imshow(K, cmap="viridis", vmin=min(K.min(), 0), interpolation="nearest")
    above.set(xticks=[], yticks=[])
    above.set_title(name, fontsize=9)
    above.grid(visible=False)
    values, vectors = np.linalg.eigh(K)
    rng = np.random.default_rng(5)
    draws = vectors * np.sqrt(np.maximum(values, 0)) @ rng.normal(size=(len(x), 3))
    below.plot(x[:, 0], draws, lw=1.1)
    below.axhline(0, color="0.8", lw=0.8, zorder=0)
    below.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("$k(x, z)$")
axes[1, 0].set_ylabel("functions")
plt.show()
