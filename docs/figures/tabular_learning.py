"""Cliff walk: returns while learning; random walk: errors of two ways to learn values."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MDPEnvironment, worlds
from epicycle.rl import SARSA, MonteCarloPrediction, QLearning, TDPrediction

cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=1000)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for cls in (SARSA, QLearning):
    runs = [cls(learning_rate=0.5, discount=1.0).learn(cliff, 25_000, seed=seed).history_ for seed in range(20)]
    returns = np.mean([run["return"][:500] for run in runs], axis=0)
    left.plot(np.arange(10, 500, 20), returns.reshape(-1, 20).mean(axis=1), label=cls.__name__)
left.set_ylim(-100, 0)
left.set_xlabel("episode")
left.set_ylabel("return while learning")
left.legend()

walk, truth = MDPEnvironment(worlds.random_walk(5), start=3), np.arange(1, 6) / 6
steps = np.arange(40, 1001, 40)
for cls, rate, style in (
    (TDPrediction, 0.05, "-"),
    (TDPrediction, 0.1, "--"),
    (MonteCarloPrediction, 0.01, "-"),
    (MonteCarloPrediction, 0.03, "--"),
):
    errors = np.zeros((30, len(steps)))
    for run in range(len(errors)):
        for i, n in enumerate(steps):  # from the beginning each time, with the same seed
            agent = cls(learning_rate=rate, discount=1.0, initial_value=0.5).learn(walk, int(n), seed=run)
            errors[run, i] = np.sqrt(np.mean((agent.values_[1:-1] - truth) ** 2))
    name = "TD" if cls is TDPrediction else "Monte Carlo"
    colour = "C0" if cls is TDPrediction else "C1"
    right.plot(steps, errors.mean(axis=0), style, color=colour, label=f"{name}, rate {rate}")
right.set_xlabel("step")
right.set_ylabel("error of the values")
right.legend()
fig.tight_layout()
