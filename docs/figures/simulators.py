"""Trajectories of a pendulum in its plane of states, and poles that a regulator can save."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import LQR, CartPole, InvertedPendulum

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
rod = InvertedPendulum(time_step=0.01, integrator="rk4", max_speed=np.inf)
starts = np.column_stack([np.full(15, -np.pi), np.linspace(0.5, 10.0, 15)])
starts = np.vstack([starts, [-1, -1] * starts])
for angle, speed in rod.rollout(starts, np.zeros((400, 1))).states.transpose(0, 2, 1):
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    wrapped[1:][np.abs(np.diff(wrapped)) > 3] = np.nan  # no line across the seam
    left.plot(wrapped, speed, color="C0", lw=0.8)
left.set_xlabel("angle from upright (radians)")
left.set_ylabel("angular speed (radians/s)")

cart = CartPole(max_angle=np.pi / 2, max_position=100.0)
_, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
regulator = LQR(A, B, np.eye(4), [[0.1]]).solve()
angles = np.radians(np.arange(5, 75, 5))
paths = cart.rollout(np.column_stack([np.zeros((len(angles), 2)), angles, 0 * angles]), policy=regulator, n_steps=200)
for path, length in zip(paths.states, paths.lengths, strict=True):
    made = slice(0, length + 1)
    right.plot(0.02 * np.arange(201)[made], np.degrees(path[made, 2]), color="C1" if length < 200 else "C0", lw=1.2)
right.plot([], [], color="C0", label="saved")
right.plot([], [], color="C1", label="lost")
right.set(xlabel="seconds", ylabel="angle of the pole (degrees)", ylim=(-60, 92))
right.legend()
fig.tight_layout()
