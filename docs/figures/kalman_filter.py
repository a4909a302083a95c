"""Position and speed of a body from noisy positions, with a gap in the middle: filtered and smoothed."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import KalmanFilter

dt = 0.1
model = KalmanFilter(
    A=[[1, dt], [0, 1]],
    C=[[1, 0]],
    W=0.5 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]),
    V=[[0.3**2]],
    covariance=np.eye(2),
)
states, y = model.sample(120, random_state=5)
y[50:75] = np.nan
seconds = dt * np.arange(120)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4))
for ax, j, label in zip(axes, (0, 1), ("position (m)", "speed (m/s)"), strict=True):
    for name, result, color in (("filter", model.filter(y), "C1"), ("smoother", model.smooth(y), "C0")):
        mean, spread = result.mean[:, j], 2 * np.sqrt(result.covariance[:, j, j])
        ax.fill_between(seconds, mean - spread, mean + spread, color=color, alpha=0.2, lw=0)
        ax.plot(seconds, mean, color=color, label=name)
    ax.plot(seconds, states[:, j], "k--", lw=1, label="truth")
    if j == 0:
        ax.plot(seconds, y[:, 0], "k.", ms=3, label="observed")
    ax.set_xlabel("seconds")
    ax.set_ylabel(label)
axes[0].legend()
fig.tight_layout()
