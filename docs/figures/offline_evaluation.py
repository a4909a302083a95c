"""A grid walked by one policy, to value another: errors by number of episodes, and what they are worth by policy."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MDPEnvironment, policy_iteration, worlds
from epicycle.rl import Episodes, evaluate_offline, record_episodes

warnings.filterwarnings("ignore", message="evaluate_offline")  # few effective episodes are what is shown
grid = worlds.russell_norvig_grid()
start, best = (2, 0), policy_iteration(grid)
env = MDPEnvironment(grid, start=start)
q = best.q_values()
greedy = np.eye(q.shape[1])[q.argmax(axis=1)]
truth = float(best.values[7])
names = ["ordinary", "weighted", "per_decision", "doubly_robust", "fitted_q"]


def first_of(steps, k):
    rows = slice(0, int(steps.starts[k]))
    parts = ("observations", "actions", "rewards", "next_observations", "terminated", "truncated", "probabilities")
    return Episodes(*(getattr(steps, part)[rows] for part in parts))


counts, runs = np.array([50, 100, 200, 400]), 16
errors = np.zeros((len(names), runs, len(counts)))
tried = 0.7 * greedy + 0.3 / 4
for run in range(runs):
    seen = record_episodes(tried, env, int(counts[-1]), seed=run)
    for j, k in enumerate(counts):
        for i, name in enumerate(names):
            found = evaluate_offline(
                greedy, first_of(seen, k), method=name, discount=grid.discount, n_bootstrap=2, random_state=0
            )
            errors[i, run, j] = found.mean - truth

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
for name, error in zip(names, errors, strict=True):
    left.loglog(counts, np.sqrt((error**2).mean(axis=0)), marker="o", label=name)
left.set_xticks(counts, [str(k) for k in counts])
left.set_xticks([], minor=True)
left.set(xlabel="recorded episodes", ylabel="error of the value (root mean square)", ylim=(1e-3, None))
left.legend(fontsize="small", loc="lower left", ncols=2)
shares = np.linspace(0.4, 1, 7)
worth = []
for share in shares:
    seen = record_episodes(share * greedy + (1 - share) / 4, env, 200, seed=0)
    worth.append(evaluate_offline(greedy, seen, method="weighted", discount=grid.discount).effective_episodes)
right.semilogy(shares, worth, marker="o")
right.axhline(200, color="0.5", lw=1)
right.set(
    xlabel="share of the recorded policy that is the new one", ylabel="effective episodes of 200", ylim=(0.8, 300)
)
fig.tight_layout()
