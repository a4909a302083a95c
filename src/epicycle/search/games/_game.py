"""`Game`: the rules of a game for two players, as searches and learners ask for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray

#: The number of chance among players.
CHANCE = 2


class Game(ABC):
    """Rules of a zero-sum game for players 0 and 1, who may move in any order; chance counts as player 2.

    A subclass gives the abstract methods; states are values that are never changed, moves are numbers from 0 to
    `n_actions` - 1. Games with hidden information also give `information_set`, games of chance `chance`, and networks
    need `encode`.

    Examples
    --------
    Nim with one heap: who takes the last of five sticks wins, and one or two are taken at a time.

    >>> from epicycle.search import Game, minimax
    >>> class Nim(Game):
    ...     n_actions = 3
    ...     def initial_state(self): return (5, 0)
    ...     def player(self, state): return state[1]
    ...     def legal_moves(self, state): return [n for n in (1, 2) if n <= state[0]]
    ...     def apply(self, state, move): return (state[0] - move, 1 - state[1])
    ...     def is_over(self, state): return state[0] == 0
    ...     def result(self, state): return 1.0 if state[1] == 1 else -1.0
    >>> result = minimax(Nim())
    >>> result.action, result.value, result.certificate.holds
    (2, 1.0, True)
    """

    #: Number of moves that the game knows, legal in some state.
    n_actions: int

    @abstractmethod
    def initial_state(self) -> Any:
        """State in which a game begins."""

    @abstractmethod
    def player(self, state: Any) -> int:
        """Who moves: 0, 1, or 2 for chance; any of them where the game is over."""

    @abstractmethod
    def legal_moves(self, state: Any) -> list[int]:
        """Legal moves in ascending order; none where the game is over."""

    @abstractmethod
    def apply(self, state: Any, move: int) -> Any:
        """State after a legal move."""

    @abstractmethod
    def is_over(self, state: Any) -> bool:
        """Whether the game has ended."""

    @abstractmethod
    def result(self, state: Any) -> float:
        """Payoff of player 0 at the end, which player 1 pays, such as 1, 0 or -1."""

    def chance(self, state: Any) -> list[float]:
        """Probabilities of the legal moves where chance moves."""
        raise NotImplementedError(f"{type(self).__name__}.chance: chance moves in this game; give its probabilities")

    def key(self, state: Any) -> Hashable:
        """A value that states have in common if and only if the games that follow them are the same."""
        found: Hashable = state
        return found

    def information_set(self, state: Any) -> Hashable:
        """All that the player who moves knows; by default the whole state."""
        return self.key(state)

    def encode(self, state: Any) -> Array:
        """Planes (C, H, W) for a network, from the view of the player who moves."""
        raise NotImplementedError(f"{type(self).__name__}.encode: a network needs planes (C, H, W) for each state")

    def symmetries(self, planes: Array, policy: Array) -> list[tuple[Array, Array]]:
        """Pairs of planes and of a policy that are the same up to a symmetry of the game, themselves first."""
        return [(planes, policy)]

    def text(self, state: Any) -> str:
        """The state as a few lines of text."""
        return str(state)

    def move_text(self, move: int) -> str:
        """A move as players write it."""
        return str(move)

    def read_move(self, text: str) -> int:
        """The move that a player wrote; `ValueError` where there is none of this name."""
        names = {self.move_text(move).lower(): move for move in range(self.n_actions)}
        if text.strip().lower() not in names:
            raise DataError(f"move {text!r:.40}: expected one of {', '.join(list(names)[:8])}, ...")
        return names[text.strip().lower()]


def checked_state(where: str, game: Game, state: Any) -> Any:
    """The state to search from, by default the first one; an error where the game is over."""
    found = game.initial_state() if state is None else state
    if game.is_over(found):
        raise DataError(f"{where}: the game is over in this state; expected one with legal moves")
    return found
