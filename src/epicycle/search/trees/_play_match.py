"""`play_match`: games between two players, with an interval of their score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import beta

from epicycle.core import _parameters as domains
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, InstanceOf, Integer, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.search.games._game import Game

Array = np.ndarray
Player = Callable[[Any], int]


@dataclass(frozen=True)
class MatchResult:
    """Games of two players, seen from the first named.

    Attributes
    ----------
    wins, draws, losses : int
        Of the first named.
    score : float
        Wins and half the draws, as a share of the games.
    interval : tuple of float
        Clopper-Pearson interval of 95 % for the probability to win, draws left out; 0 and 1 without decided games.
    elo : float
        Difference of the Elo ratings that the score stands for; a score of all or nothing counts as half a game less.
    games : list of tuple of int
        Moves of each game; in games with odd numbers the second named moves first.
    """

    wins: int
    draws: int
    losses: int
    games: list[tuple[int, ...]] = field(repr=False)

    @property
    def score(self) -> float:
        return (self.wins + self.draws / 2) / (self.wins + self.draws + self.losses)

    @property
    def interval(self) -> tuple[float, float]:
        w, n = self.wins, self.wins + self.losses
        low = float(beta.ppf(0.025, w, n - w + 1)) if w else 0.0
        high = float(beta.ppf(0.975, w + 1, n - w)) if w < n else 1.0
        return low, high

    @property
    def elo(self) -> float:
        """Difference of the Elo ratings that the score stands for."""
        return elo_difference(self.score, self.wins + self.draws + self.losses)


def elo_difference(score: float, games: int) -> float:
    """Difference of ratings that a score stands for; a score of all or nothing counts as half a game less."""
    held = min(max(score, 0.5 / games), 1 - 0.5 / games)
    return 400 * math.log10(held / (1 - held))


def play_match(
    game: Game, first: Any, second: Any, n_games: int = 100, *, opening_moves: int = 0, random_state: Seed = None
) -> MatchResult:
    """Play games between two players, who take turns to begin.

    Parameters
    ----------
    game : Game
        The rules.
    first, second : object with `act`, or callable
        Players: a state to a move, such as :class:`MCTS`.
    n_games : int, default=100
        Number of games.
    opening_moves : int, default=0
        Random moves at the start, the same in each pair of games, so that players without chance play many games.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the openings.

    Returns
    -------
    MatchResult

    Examples
    --------
    >>> from epicycle.search import MCTS, TicTacToe, minimax, play_match
    >>> game = TicTacToe()
    >>> match = play_match(game, MCTS(game, random_state=0), lambda s: minimax(game, s).action, 4)
    >>> match.wins, match.draws, match.losses
    (0, 4, 0)
    """
    check_parameter("play_match", "game", game, InstanceOf(Game))
    check_parameter("play_match", "n_games", n_games, Integer(minimum=1))
    check_parameter("play_match", "opening_moves", opening_moves, Integer(minimum=0))
    check_parameter("play_match", "random_state", random_state, SHARED_PARAMETERS["random_state"])
    players = [_player("first", first), _player("second", second)]
    seed, counts, games = seed_of(random_state), [0, 0, 0], []
    for number in range(n_games):
        rng = stream(seed, "opening", number // 2)
        begins = number % 2  # the named player who is player 0
        state = game.initial_state()
        moves: list[int] = []
        while not game.is_over(state):
            legal = game.legal_moves(state)
            if len(moves) < opening_moves:
                move = int(rng.choice(legal))
            else:
                move = players[game.player(state) ^ begins](state)
                if move not in legal:
                    raise DataError(f"{('first', 'second')[game.player(state) ^ begins]}: move {move!r} is not legal")
            moves.append(int(move))
            state = game.apply(state, move)
        result = game.result(state) * (1 if begins == 0 else -1)
        counts[int(np.sign(result)) + 1] += 1
        games.append(tuple(moves))
    return MatchResult(counts[2], counts[1], counts[0], games)


def _player(name: str, given: Any) -> Player:
    if hasattr(given, "act"):
        act: Player = given.act
        return act
    check_parameter("play_match", name, given, domains.Callable())
    found: Player = given
    return found
