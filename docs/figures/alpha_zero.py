"""Losses of a learner of tic-tac-toe, and what its network thinks of a position before and after."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import AlphaZero, TicTacToe

game = TicTacToe()
state = game.position([0, 4, 1])
options = {"channels": 16, "blocks": 1, "simulations": 25, "games": 32, "temperature_moves": 4, "random_state": 0}
begun = AlphaZero(game, steps=1, **options).learn(1)
learner = AlphaZero(game, steps=60, **options).learn(10)
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6))
history = learner.history_
axes[0].plot(np.arange(1, 11), history.policy_loss, label="policy")
axes[0].plot(np.arange(1, 11), history.value_loss, label="value")
axes[0].set_xlabel("iteration")
axes[0].set_ylabel("loss")
axes[0].set_ylim(0)
axes[0].legend()
for ax, player, title in ((axes[1], begun, "after one update"), (axes[2], learner, "after ten iterations")):
    policy, value = player.evaluate(state)
    shown = np.where(policy > 0, np.round(100 * policy), np.nan)
    game.plot(state, values=shown, ax=ax)
    ax.set_title(f"{title}: value {value:+.2f}")
fig.tight_layout()
