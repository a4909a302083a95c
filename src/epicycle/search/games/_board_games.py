"""The games that come with the package: tic-tac-toe, Connect Four, Othello on 6 x 6, Go on 5 x 5 and 7 x 7."""

from __future__ import annotations

import numpy as np

from epicycle.core._parameters import Choice, Described, check_parameter
from epicycle.search.games._native_game import NativeGame, Position

Array = np.ndarray


class TicTacToe(NativeGame):
    """Three in a row on 3 x 3; moves are cells, row by row.

    Examples
    --------
    >>> from epicycle.search import TicTacToe
    >>> game = TicTacToe()
    >>> print(game.text(game.position([4, 0])))
     3 O . .
     2 . X .
     1 . . .
       a b c
    """

    rows = columns = 3
    n_actions = 9
    _rules = (0, 0)


class ConnectFour(NativeGame):
    """Four in a row on 7 columns of 6; moves are columns, into which stones fall.

    Examples
    --------
    >>> from epicycle.search import ConnectFour
    >>> game = ConnectFour()
    >>> game.result(game.position([3, 0, 3, 0, 3, 0, 3]))
    1.0
    """

    rows, columns = 6, 7
    n_actions = 7
    _rules = (1, 0)

    def symmetries(self, planes: Array, policy: Array) -> list[tuple[Array, Array]]:
        return [(planes, policy), (np.ascontiguousarray(planes[:, :, ::-1]), np.ascontiguousarray(policy[::-1]))]

    def text(self, state: Position) -> str:
        rows = [" ".join(self.stones[who] for who in row) for row in state.board]
        return "\n".join([*rows, " ".join(str(j + 1) for j in range(self.columns))])

    def move_text(self, move: int) -> str:
        return str(move + 1)

    def _axis_names(self) -> tuple[list[str], list[str]]:
        return [str(j + 1) for j in range(self.columns)], [""] * self.rows

    def _cell_of(self, state: Position, move: int) -> tuple[int, int] | None:
        free = np.flatnonzero(state.board[:, move] < 0)
        return (int(free[-1]), move) if len(free) else None


class Othello(NativeGame):
    """Othello on 6 x 6; moves are cells, row by row, and a pass where no other move is legal.

    Player 0 has the black stones. With best play by both White wins (J. Feinstein, 1993).

    Examples
    --------
    >>> from epicycle.search import Othello
    >>> game = Othello()
    >>> [game.move_text(move) for move in game.legal_moves(game.initial_state())]
    ['c5', 'b4', 'e3', 'd2']
    """

    rows = columns = 6
    n_actions = 37
    _rules = (2, 0)
    _black_and_white = True


class Go(NativeGame):
    """Go on a small board: area scoring, positional superko, no suicide; moves are crossings, row by row, and a pass.

    A game ends after two passes, or after 4 size² moves, and is counted as it stands: a player has the own stones and
    the empty regions that only they touch. No position of the board may come up twice.

    Parameters
    ----------
    size : {5, 7}, default=5
        Number of lines.
    komi : float, default=0.5
        Points for White, a multiple of a half; with a half there are no draws.

    Examples
    --------
    >>> from epicycle.search import Go
    >>> game = Go(5, komi=24.5)
    >>> game.result(game.position([12, 25, 25]))
    1.0
    """

    _black_and_white = True
    _on_crossings = True

    def __init__(self, size: int = 5, *, komi: float = 0.5) -> None:
        check_parameter("Go", "size", size, Described("5 or 7", lambda n: n in (5, 7)))
        halves = Described("a multiple of 0.5 between -100 and 100", _is_komi)
        check_parameter("Go", "komi", komi, halves)
        self.size, self.komi = int(size), float(komi)
        self.rows = self.columns = self.size
        self.n_actions = self.size**2 + 1
        self._rules = (3 if size == 5 else 4, round(2 * komi))

    def __repr__(self) -> str:
        return f"Go({self.size}, komi={self.komi:g})"


def _is_komi(value: object) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(number and abs(value) <= 100 and (2 * value) % 1 == 0)  # type: ignore[arg-type, operator]


#: Games by the name that a shell takes.
NATIVE_GAMES = {"tic-tac-toe": TicTacToe, "connect-four": ConnectFour, "othello": Othello, "go": Go}


def game_named(name: str) -> NativeGame:
    """A game by its name."""
    check_parameter("game", "name", name, Choice(*NATIVE_GAMES))
    return NATIVE_GAMES[name]()
