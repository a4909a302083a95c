"""A walk along a cliff with gusts: what a cloned policy and one that asked lose, by the number of answers."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import DecisionTreeClassifier
from epicycle.control import MDP, MDPEnvironment
from epicycle.rl import BehaviorCloning, DAgger, record_episodes

# Forty places on a path (even states) and beside it (odd ones): a gust blows off the path one time in thirty, action 1
# climbs back, and every step beside the path costs 1.
n, gust = 40, 1 / 30
P = np.zeros((2, 2 * n + 2, 2 * n + 2))
for place in range(n):
    on, off = 2 * place, 2 * place + 1
    P[0, on, [on + 2, off + 2]] = 1 - gust, gust
    P[1, on, off + 2] = P[0, off, off + 2] = P[1, off, on + 2] = 1
path = MDPEnvironment(MDP(list(P), -(np.arange(2 * n + 2) % 2.0), 1.0, terminal=[2 * n, 2 * n + 1]), start=0)
expert = np.arange(2 * n + 2) % 2
rounds, lost = np.arange(1, 11), np.zeros((2, 12, 10))
for run in range(12):
    seen = record_episodes(expert, path, 40, seed=run)
    tree = DecisionTreeClassifier(random_state=0)
    agent = DAgger(lambda s: expert[s], tree, batch_size=4 * n, expert_share=0.0, random_state=run)
    for i, k in enumerate(rounds):
        rows = slice(0, 4 * n * int(k))
        clone = BehaviorCloning(tree, held_out=0, random_state=0).fit(seen.observations[rows], seen.actions[rows])
        agent.learn(path, 4 * n, seed=1000 * run + i)
        for j, policy in enumerate((clone, agent)):
            lost[j, run, i] = -policy.evaluate(path, 40, seed=0).mean
fig, ax = plt.subplots(figsize=(6.5, 3.4))
for name, values in zip(("BehaviorCloning", "DAgger"), lost, strict=True):
    mean, around = values.mean(axis=0), 2 * values.std(axis=0) / np.sqrt(len(values))
    (line,) = ax.plot(4 * n * rounds, mean, marker="o", label=name)
    ax.fill_between(4 * n * rounds, mean - around, mean + around, color=line.get_color(), alpha=0.2)
ax.axhline(n * gust, color="0.5", lw=1)
ax.text(4 * n * 10, n * gust, "expert", ha="right", va="top", color="0.4")
ax.set(xlabel="answers of the expert", ylabel="steps beside the path", ylim=(0, None))
ax.legend()
fig.tight_layout()
