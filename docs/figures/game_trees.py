"""A position of Connect Four with the visits of a search, and how the search makes up its mind."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import MCTS, ConnectFour

game = ConnectFour()
state = game.position([int(column) - 1 for column in "742234173564"])
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
result = MCTS(game, simulations=5000, solver=False, random_state=0).search(state)
game.plot(state, values=np.where(result.visits > 0, result.visits, np.nan), ax=left)
left.set_title("visits of the moves, 5000 simulations")
counts = np.geomspace(20, 5000, 12).astype(int)
for seed in range(5):
    shares = [
        MCTS(game, simulations=int(n), solver=False, random_state=seed).search(state).policy[result.action]
        for n in counts
    ]
    right.plot(counts, shares, color="C0", alpha=0.6, marker="o", ms=3)
right.set_xscale("log")
right.set_ylim(0, 1)
right.set_xlabel("simulations")
right.set_ylabel(f"share of column {game.move_text(result.action)}")
right.set_title("the choice settles")
fig.tight_layout()
