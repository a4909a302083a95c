"""Dyna-Q and prioritised sweeping in the textbook's maze: lengths of episodes, and the loss against the updates."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MDPEnvironment, worlds
from epicycle.rl import DynaQ, PrioritizedSweeping

rows = [".......#+", "..#....#.", "..#....#.", "..#......", ".....#...", "........."]
maze = worlds.grid_world("\n".join(rows), step_reward=0.0, slip=0.0, discount=0.95)
env = MDPEnvironment(maze, start=(2, 0))
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for n, steps in ((0, 40_000), (5, 12_000), (50, 12_000)):
    runs = [DynaQ(planning_steps=n, discount=0.95).learn(env, steps, seed=seed) for seed in range(30)]
    lengths = np.mean([run.history_["length"][:30] for run in runs], axis=0)
    left.plot(np.arange(1, 31), lengths, label=f"{n} planning steps" if n else "Q-learning")
left.set_ylim(0, 800)
left.set_xlabel("episode")
left.set_ylabel("steps of an episode")
left.legend()

steps = np.unique(np.geomspace(200, 20_000, 25).astype(int))
for agent, name in (
    (DynaQ(planning_steps=5, learning_rate=0.5, discount=0.95), "Dyna-Q"),
    (PrioritizedSweeping(planning_steps=5, discount=0.95), "prioritised sweeping"),
):
    found = np.zeros((10, len(steps), 2))
    for seed in range(len(found)):
        for i, n in enumerate(steps):  # from the beginning each time, with the same seed
            settings = {key: getattr(agent, key) for key in agent._arguments}
            run = type(agent)(**settings).learn(env, int(n), seed=seed)
            found[seed, i] = run.n_updates_, run.certificate_.value
    updates, loss = np.median(found[..., 0], axis=0), found[..., 1].mean(axis=0)
    right.plot(updates, 100 * loss, "o-", ms=3, label=name)
right.set_xscale("log")
right.set_xlabel("updates of values")
right.set_ylabel("loss of the policy, %")
right.legend()
fig.tight_layout()
