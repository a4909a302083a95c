"""Games that are played by policies alone, without search, many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._random import stream
from epicycle.search.alpha_zero._parallel_games import turns
from epicycle.search.games._game import Game

Array = np.ndarray
#: Planes and legal moves of positions to probabilities of moves.
Policy = Callable[[Array, Array], Array]


@dataclass
class PolicyGame:
    """One game: for each move the planes, the legal moves, the player and the move; the result for player 0."""

    planes: list[Array] = field(default_factory=list)
    legal: list[Array] = field(default_factory=list)
    players: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    result: float = 0.0

    def note(self, game: Game, state: Any) -> None:
        """Keep a position, before its move is chosen."""
        self.planes.append(np.asarray(game.encode(state), dtype=np.float32))
        self.legal.append(np.isin(np.arange(game.n_actions), game.legal_moves(state)))
        self.players.append(game.player(state))


def play_by_policies(
    game: Game, pairs: Sequence[tuple[Policy, Policy]], seed: int, keys: tuple[Any, ...]
) -> list[PolicyGame]:
    """Play one game for each pair of policies of players 0 and 1, with moves that are drawn."""
    states = [game.initial_state() for _ in pairs]
    played = [PolicyGame() for _ in pairs]
    randoms = [stream(seed, *keys, "game", i) for i in range(len(pairs))]
    for policy, numbers in turns(game, states, pairs):
        for i in numbers:
            played[i].note(game, states[i])
        planes, legal = (np.stack([getattr(played[i], name)[-1] for i in numbers]) for name in ("planes", "legal"))
        for i, p in zip(numbers, policy(planes, legal).astype(np.float64), strict=True):
            move = int(randoms[i].choice(len(p), p=p / p.sum()))
            played[i].moves.append(move)
            states[i] = game.apply(states[i], move)
            if game.is_over(states[i]):
                played[i].result = game.result(states[i])
    return played


def replayed(game: Game, moves: Sequence[int], name: str) -> PolicyGame:
    """A game that was recorded as its moves; an error names the first that the rules do not allow."""
    found, state = PolicyGame(), game.initial_state()
    for number, move in enumerate(moves):
        if game.is_over(state) or move not in game.legal_moves(state):
            raise DataError(f"{name}: move {number}, {move!r:.20}, is not legal there; expected moves of {game!r}")
        found.note(game, state)
        found.moves.append(int(move))
        state = game.apply(state, int(move))
    if game.is_over(state):
        found.result = game.result(state)
    return found
