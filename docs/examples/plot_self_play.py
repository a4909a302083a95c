"""
From random play to perfect play
================================

AlphaZero knows the rules of a game and nothing else. A network gives probabilities p of the moves and a value v, a
tree search that it guides finds better probabilities :math:`\\pi`, the searches play whole games with results z, and
the network is fitted to both,

.. math:: \\ell = (z - v)^2 - \\sum_a \\pi_a \\log p_a .

Tic-tac-toe is small enough for an exact answer: alpha-beta search plays it perfectly, and nobody wins against it. How
much has been learnt is the share of games that end in a draw.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.search import AlphaZero, TicTacToe, minimax, play_match

game = TicTacToe()


def perfect(state):
    return minimax(game, state).action


def network(learner):
    """The move to which the network gives the largest probability, without any search."""
    return lambda state: int(np.argmax(learner.evaluate(state)[0]))


# %%
# Six iterations of 24 games each. The players meet perfect play in 60 games, each of which begins with a random move,
# and take turns to be first. The network itself, without search, now draws most games; with its search hardly one is
# lost.
options = {"channels": 16, "blocks": 1, "simulations": 20, "games": 24, "steps": 25, "random_state": 0}
begun = AlphaZero(game, **{**options, "games": 2, "steps": 1}).learn(1)
learner = AlphaZero(game, **options).learn(6)
rng = np.random.default_rng(0)
players = {
    "random moves": lambda state: int(rng.choice(game.legal_moves(state))),
    "network at the start": network(begun),
    "network after self-play": network(learner),
    "with its search": learner,
    "alpha-beta itself": perfect,
}
results = {}
for name, player in players.items():
    match = results[name] = play_match(game, player, perfect, 60, opening_moves=1, random_state=0)
    print(f"{name:24} won {match.wins}, drawn {match.draws}, lost {match.losses}")

# %%
# The losses, an opening that leaves a single move (the first player threatens to fill the upper row), and the
# results. Two perfect players draw every game.
fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained", width_ratios=[1, 0.8, 1.4])
history = learner.history_
axes[0].plot(1 + np.arange(6), history.policy_loss, "o-", label="policy")
axes[0].plot(1 + np.arange(6), history.value_loss, "o-", label="value")
axes[0].set(xlabel="iteration", ylabel="loss", ylim=(0, None))
axes[0].legend()
state = game.position([0, 4, 1])
policy, value = learner.evaluate(state)
game.plot(state, values=np.where(policy > 0, np.round(100 * policy), np.nan), ax=axes[1])
axes[1].set_title(f"moves in percent, value {value:+.2f}")
left = np.zeros(len(results))
for label, colour in (("wins", "C2"), ("draws", "C0"), ("losses", "0.75")):
    share = np.array([getattr(match, label) / 60 for match in results.values()])
    axes[2].barh(list(results), share, left=left, color=colour, label=label)
    left += share
axes[2].set(xlabel="share of games against perfect play")
axes[2].invert_yaxis()
axes[2].legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=3)
plt.show()
