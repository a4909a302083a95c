"""Exploitability by iteration, in a matrix game and in Leduc hold'em."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import CFR, LeducPoker, SelfPlay

warnings.simplefilter("ignore")  # the runs are stopped before they are at their tolerance
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
A = np.random.default_rng(0).uniform(-1, 1, size=(20, 20))
for method in ("fictitious_play", "regret_matching", "regret_matching+"):
    history = SelfPlay(method, tol=1e-9).learn(A, 10_000).history_
    left.loglog(history.iteration, history.exploitability, label=method.replace("_", " "))
left.set_title("a matrix game, 20 x 20")
game = LeducPoker()
for variant in ("vanilla", "linear", "discounted", "cfr+"):
    history = CFR(variant, tol=1e-9).learn(game, 400).history_
    right.loglog(history.iteration, history.exploitability, label=variant)
right.set_title("Leduc hold'em")
for ax in (left, right):
    ax.set_xlabel("iteration")
    ax.set_ylabel("exploitability")
    ax.legend()
fig.tight_layout()
