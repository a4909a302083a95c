"""The geocentric path of Mars, from two ellipses around the Sun, and the circles that draw it."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep


def ellipse(t, axis, eccentricity, period, perihelion):
    """Position of a planet, in astronomical units, t in years: Kepler's equation by Newton's method."""
    mean = 2 * np.pi * t / period
    E = mean.copy()
    for _ in range(20):
        E -= (E - eccentricity * np.sin(E) - mean) / (1 - eccentricity * np.cos(E))
    z = axis * (np.cos(E) - eccentricity + 1j * np.sqrt(1 - eccentricity**2) * np.sin(E))
    return z * np.exp(1j * perihelion)


rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 6.4, size=260))  # clear nights, at no regular distance
mars = ellipse(t, 1.524, 0.0934, 1.881, 5.865) - ellipse(t, 1.0, 0.0167, 1.0, 1.796)
z = mars + 0.03 * (rng.normal(size=len(t)) + 1j * rng.normal(size=len(t)))

figure, axes = plt.subplots(1, 2, figsize=(10.2, 5.2), layout="constrained", sharey=True)
for ax, count in zip(axes, (2, 5), strict=True):
    model = ep.EpicycleRegression(count).fit(t[:, None], z)
    model.plot(t[:, None], z, at=1.2, ax=ax)
    error = np.sqrt(np.mean(np.abs(model.predict(t[:, None]) - mars) ** 2))
    title = {2: "circle on circle", 5: "five circles"}[count]
    ax.set(title=f"{title}: off by {error:.2g} AU", xlim=(-3, 3), ylim=(-2.9, 2.9), ylabel="y" if count == 2 else "")
    ax.plot(0, 0, "P", color="C2", ms=9, mec="white", zorder=8)
    ax.annotate(
        "Earth",
        (0, 0),
        (9, 4),
        textcoords="offset points",
        fontsize=10,
        zorder=9,
        bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
    )
plt.show()
