"""
Thinking longer at Connect Four
===============================

Monte-Carlo tree search needs the rules of a game and nothing else: it plays on at random, and goes more often where
that went well. How much does longer thinking help? Players with 25 to 400 simulations a move meet in a tournament,
and a position that has been solved shows what a search knows for certain.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import MCTS, ConnectFour, minimax, play_match

game = ConnectFour()
budgets = [25, 50, 100, 200, 400]
share = np.full((len(budgets), len(budgets)), np.nan)
for i, strong in enumerate(budgets):
    for j, weak in enumerate(budgets[:i]):
        players = [MCTS(game, simulations=n, random_state=n) for n in (strong, weak)]
        match = play_match(game, *players, 120, opening_moves=2, random_state=0)
        share[i, j] = (match.wins + match.draws / 2) / 120

# %%
# On the left the share of the points of the player with more simulations, in 120 games that begin with two random
# moves; its standard error is about four hundredths. Twice as many simulations bring about two points of three at
# every level. Late in a game the tree reaches the end: alpha-beta proves the value of the position. The search by
# simulations prefers the same move long before it has a proof, and stops when it has one.

state = game.position([int(column) - 1 for column in "7446244653137174477761"])
proof = minimax(game, state)
print(f"alpha-beta: column {game.move_text(proof.action)}, value {proof.value:+.0f}, proven: {proof.certificate.holds}")

fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", width_ratios=[5, 6, 6])
axes[0].imshow(share, cmap="Blues", vmin=0.3, vmax=1)
for i, j in zip(*np.nonzero(~np.isnan(share)), strict=True):
    colour = "white" if share[i, j] > 0.75 else "black"
    axes[0].text(j, i, f"{share[i, j]:.0%}", ha="center", va="center", color=colour)
axes[0].grid(visible=False)
axes[0].set_xticks(range(len(budgets) - 1), budgets[:-1])
axes[0].set_yticks(range(1, len(budgets)), budgets[1:])
axes[0].set(xlim=(-0.5, len(budgets) - 1.5), ylim=(len(budgets) - 0.5, 0.5))
axes[0].set(xlabel="simulations of the opponent", ylabel="simulations", title="share of the points")
for ax, n in zip(axes[1:], (500, 50_000), strict=True):
    found = MCTS(game, simulations=n, random_state=0).search(state)
    game.plot(state, values=np.where(found.visits > 0, found.visits, np.nan), ax=ax)
    known = "not proven" if found.proven is None else f"proven after {found.visits.sum():,}"
    ax.set_title(f"visits of the moves: column {game.move_text(found.action)}, {known}")
plt.show()
