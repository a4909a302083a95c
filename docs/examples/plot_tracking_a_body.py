"""
Where is it now, where was it then
==================================

A body moves on a plane and is seen every tenth of a second, with errors and with a gap. The Kalman filter says where
it is from what was seen so far; the smoother says where it was, from everything.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import KalmanFilter

dt = 0.1
one = np.array([[1, dt], [0, 1]])
push = 0.8 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
model = KalmanFilter(
    A=np.kron(np.eye(2), one),
    C=[[1, 0, 0, 0], [0, 0, 1, 0]],
    W=np.kron(np.eye(2), push),
    V=0.35**2 * np.eye(2),
    mean=[0, 1, 0, 0.5],
    covariance=0.1 * np.eye(4),
)
states, y = model.sample(140, random_state=3)
y[60:85] = np.nan  # out of sight

# %%
# Errors of both, in the parts that were seen and in the gap.

filtered, smoothed = model.filter(y), model.smooth(y)
gap = np.isnan(y[:, 0])
for name, result in (("filter", filtered), ("smoother", smoothed)):
    miss = np.hypot(*(result.mean[:, [0, 2]] - states[:, [0, 2]]).T)
    print(f"{name:9} mean distance from the truth {miss[~gap].mean():.2f} in sight, {miss[gap].mean():.2f} in the gap")

# %%
# Paths on the plane, and the standard deviation of the position over time: the filter's grows through the gap, the
# smoother's is bridged from both sides.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")
left.plot(states[:, 0], states[:, 2], "k--", lw=1, label="truth")
left.plot(y[:, 0], y[:, 1], ".", color="0.6", ms=4, label="seen")
for name, result, colour in (("filter", filtered, "C1"), ("smoother", smoothed, "C0")):
    left.plot(result.mean[:, 0], result.mean[:, 2], color=colour, label=name)
    right.plot(dt * np.arange(140), np.sqrt(result.covariance[:, 0, 0]), color=colour, label=name)
left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
left.legend(fontsize=8)
right.axvspan(6.0, 8.5, color="0.85", lw=0)
right.set(xlabel="seconds", ylabel="standard deviation of x (m)", yscale="log")
right.legend()
plt.show()
