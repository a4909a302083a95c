"""A cart with a pole held upright by its linearisation, and the cost of controls against that of states."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import LQR

# Cart of 1 kg, pole of 0.1 kg and half length 0.5 m, linear about the upright position, steps of 0.02 s.
g, M, m, length, dt = 9.81, 1.0, 0.1, 0.5, 0.02
inertia = length * (4 / 3 - m / (M + m))
A = np.eye(4) + dt * np.array(
    [[0, 1, 0, 0], [0, 0, -m * length * g / inertia / (M + m), 0], [0, 0, 0, 1], [0, 0, g / inertia, 0]]
)
B = dt * np.array([[0], [(1 + m * length / inertia / (M + m)) / (M + m)], [0], [-1 / inertia / (M + m)]])
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for cost in (0.01, 1.0, 100.0):
    solution = LQR(A, B, np.diag([1.0, 0.1, 1.0, 0.1]), [[cost]]).solve()
    x, angles, forces = np.array([0.0, 0.0, 0.2, 0.0]), [], []
    for _ in range(250):
        u = solution.control(x)
        angles.append(x[2])
        forces.append(u[0])
        x = A @ x + B @ u
    seconds = dt * np.arange(250)
    left.plot(seconds, np.degrees(angles), label=f"R = {cost:g}")
    right.plot(seconds, forces, label=f"R = {cost:g}")
left.set_ylabel("angle of the pole (degrees)")
right.set_ylabel("force (N)")
for ax in (left, right):
    ax.set_xlabel("seconds")
    ax.legend()
fig.tight_layout()
