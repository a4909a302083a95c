"""A pendulum swings up: its trajectory, and how DDP and iLQR find it."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import DDP, InvertedPendulum, QuadraticCost, iLQR

rod = InvertedPendulum(max_speed=np.inf)
cost = QuadraticCost(np.diag([0.1, 0.01]), [[0.01]], Q_final=np.diag([100.0, 10.0]))
solutions = {
    name: solver(rod, cost, tol=1e-7).solve([np.pi, 0.0], horizon=60) for name, solver in (("DDP", DDP), ("iLQR", iLQR))
}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
best = solutions["DDP"]
seconds = 0.05 * np.arange(61)
left.plot(seconds, best.states[:, 0], label="angle from upright (radians)")
left.step(seconds[:-1], best.controls[:, 0], where="post", label="torque")
left.axhline(0, color="0.5", lw=0.8)
left.set(xlabel="seconds", ylim=(-2.4, 6.2))
left.legend()
for name, solution in solutions.items():
    right.semilogy(solution.history.gradient, ".-", label=name)
right.set_xlabel("round")
right.set_ylabel("relative gradient")
right.legend()
fig.tight_layout()
