"""`perft`: the number of ways to go on, by which rules are compared with others."""

from __future__ import annotations

from typing import Any

from epicycle._native import search as native
from epicycle.core._parameters import Boolean, InstanceOf, Integer, check_parameter
from epicycle.search.games._game import Game
from epicycle.search.games._native_game import Position


def perft(game: Game, depth: int, state: Any = None, *, include_ended: bool = False) -> int:
    """Number of sequences of `depth` moves from a state.

    Parameters
    ----------
    game : Game
        The rules.
    depth : int
        Number of moves.
    state : optional
        Where they begin; by default at the start.
    include_ended : bool, default=False
        Whether games that end sooner count as well.

    Examples
    --------
    >>> from epicycle.search import TicTacToe, perft
    >>> perft(TicTacToe(), 9, include_ended=True)
    255168
    """
    check_parameter("perft", "game", game, InstanceOf(Game))
    check_parameter("perft", "depth", depth, Integer(minimum=0))
    check_parameter("perft", "include_ended", include_ended, Boolean())
    begin = game.initial_state() if state is None else state
    if isinstance(begin, Position):
        return native.perft(*begin.arguments, depth=int(depth), ended_too=bool(include_ended))
    return _count(game, begin, depth, include_ended)


def _count(game: Game, state: Any, depth: int, include_ended: bool) -> int:
    if depth == 0:
        return 1
    if game.is_over(state):
        return int(include_ended)
    return sum(_count(game, game.apply(state, move), depth - 1, include_ended) for move in game.legal_moves(state))
