"""Mountain car: steps of the episodes while learning, and the values that were learnt."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MountainCar
from epicycle.rl import LinearSARSA, TileCoding

car, box = MountainCar().environment(max_steps=2000), ([-1.2, -0.07], [0.6, 0.07])
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for decay in (0.0, 0.9):
    agent = LinearSARSA(
        TileCoding(*box), learning_rate=0.3, epsilon=0.0, discount=1.0, trace_decay=decay, random_state=1
    ).learn(car, 40_000)
    left.semilogy(agent.history_["length"], lw=1, label=rf"$\lambda = {decay:g}$")
left.set_xlabel("episode")
left.set_ylabel("steps")
left.legend()
places, speeds = np.linspace(-1.2, 0.5, 60), np.linspace(-0.07, 0.07, 60)
grid = np.array([[agent.action_values([x, v]).max() for x in places] for v in speeds])
image = right.imshow(-grid, origin="lower", aspect="auto", extent=(-1.2, 0.5, -0.07, 0.07), cmap="viridis")
right.set_xlabel("position")
right.set_ylabel("speed")
right.grid(visible=False)
fig.colorbar(image, label="steps to the goal")
fig.tight_layout()
