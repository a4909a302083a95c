"""A policy cloned from games of an expert, what playing makes of it, and what the value network thinks."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import MCTS, AlphaGo, TicTacToe, play_match

game = TicTacToe()
expert = MCTS(game, simulations=30, random_state=0)
games = play_match(game, expert, expert, 150, opening_moves=2, random_state=0).games
settings = {"channels": 16, "blocks": 1, "clone_steps": 150, "rounds": 60, "value_games": 400, "value_steps": 200}
learner = AlphaGo(game, **settings, random_state=0).learn(games, opening_moves=2)
state = game.position([0, 4, 1])
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6))
scores = learner.history_.score[1:-1]
axes[0].plot(np.arange(1, 61), scores, ".", alpha=0.4, label="64 games")
axes[0].plot(np.arange(5, 57), np.convolve(scores, np.full(9, 1 / 9), "valid"), label="mean of 9 rounds")
axes[0].axhline(0.5, color="0.6", linewidth=1)
axes[0].set_xlabel("round")
axes[0].set_ylabel("score against an earlier copy")
axes[0].legend()
for ax, policy in zip(axes[1:], ("cloned", "reinforced"), strict=True):
    p = learner.probabilities(state, policy)
    game.plot(state, values=np.where(p > 0, np.round(100 * p), np.nan), ax=ax)
    ax.set_title(f"{policy} policy")
fig.tight_layout()
