"""Values of the pendulum on a grid with a swing-up, and of the car by fitted values."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import FittedValueIteration, InvertedPendulum, MountainCar, discretize

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8))
rod = InvertedPendulum()
torques = [[-2.0], [0.0], [2.0]]
grid = discretize(rod, [-np.pi, -8], [np.pi, 8], (60, 61), actions=torques, discount=0.97, periodic=[0])
plan = grid.solve()
plan.plot(ax=left)
states = rod.rollout([np.pi, 0.0], policy=plan, n_steps=120).states
angle = (states[:, 0] + np.pi) % (2 * np.pi) - np.pi
left.plot(angle, states[:, 1], ".", color="#D55E00", markersize=4)
left.set_xlabel("angle from upright")
left.set_ylabel("angular speed")
left.set_title("swing-up by a grid of 60 x 61 points")
car = MountainCar()
model = FittedValueIteration(car, max_iter=100, random_state=0).fit(low=[-1.2, -0.07], high=[0.5, 0.07], n_samples=1200)
x, v = np.meshgrid(np.linspace(-1.2, 0.5, 80), np.linspace(-0.07, 0.07, 80))
values = model.value(np.column_stack([x.ravel(), v.ravel()])).reshape(x.shape)
image = right.pcolormesh(x, v, values, cmap="cividis", shading="nearest")
fig.colorbar(image, ax=right, label="value")
ride = car.rollout([-0.5, 0.0], policy=model, n_steps=200)
right.plot(*ride.states[: int(ride.lengths) + 1].T, ".", color="#D55E00", markersize=4)
right.set_xlabel("position")
right.set_ylabel("speed")
right.set_title("out of the valley by fitted values")
right.set_xlim(-1.2, 0.52)
for ax in (left, right):
    ax.grid(False)
fig.tight_layout()
