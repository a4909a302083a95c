"""A car changes lane and back under predictive control."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MPC, Bicycle, QuadraticCost

car, steps = Bicycle(), 160
time = car.time_step * np.arange(steps + 40)
lane = np.where((time > 2) & (time < 5), 3.0, 0.0)
target = np.column_stack([5 * time, lane, np.zeros_like(time), np.full_like(time, 5.0)])
cost = QuadraticCost(np.diag([0.1, 1.0, 1.0, 0.1]), np.diag([0.1, 5.0]), target=target)
controller = MPC(car, cost, horizon=30, control_low=[-3, -0.2], control_high=[3, 0.2])
run = controller.run(car, [0.0, 0.0, 0.0, 5.0], n_steps=steps)
fig, (above, below) = plt.subplots(2, 1, figsize=(9, 4.2), sharex=True)
above.plot(target[:steps, 0], lane[:steps], "k--", lw=1, label="target")
above.plot(run.states[:, 0], run.states[:, 1], label="path")
above.set_ylabel("y (m)")
above.legend(loc="upper right")
below.step(run.states[:-1, 0], run.controls[:, 1], where="post", color="C1")
for limit in (-0.2, 0.2):
    below.axhline(limit, color="0.5", lw=0.8, ls=":")
below.set_xlabel("x (m)")
below.set_ylabel("steering (radians)")
fig.tight_layout()
