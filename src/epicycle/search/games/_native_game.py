"""Games whose rules are compiled: a position is the moves that led to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from epicycle._native import search as native
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, styled
from epicycle.search.games._game import Game

Array = np.ndarray
Rules = tuple[int, int]  # the number of the game in the compiled module, and its option


class Position:
    """Moves from the start of a game; the rest is computed when it is asked for.

    Attributes
    ----------
    moves : tuple of int
        Moves from the start.
    board : array (rows, columns)
        0 and 1 for stones of the players, -1 for an empty cell; the first row is the upper one.
    """

    __slots__ = ("__dict__", "moves", "rules")

    def __init__(self, rules: Rules, moves: tuple[int, ...] = ()) -> None:
        self.rules, self.moves = rules, moves

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and (self.rules, self.moves) == (other.rules, other.moves)

    def __hash__(self) -> int:
        return hash((self.rules, self.moves))

    def __repr__(self) -> str:
        return f"Position(moves={list(self.moves)})"

    @property
    def arguments(self) -> tuple[int, int, Array]:
        """The arguments of the kernels."""
        return (*self.rules, np.array(self.moves, dtype=np.int64))

    @cached_property
    def _facts(self) -> tuple[Array, Array, int, bool, int, int]:
        return native.position(*self.arguments)

    @property
    def board(self) -> Array:
        return self._facts[0]

    @property
    def legal(self) -> list[int]:
        """Legal moves."""
        return [int(move) for move in self._facts[1]]


class NativeGame(Game):
    """Base of the games whose rules are compiled."""

    rows: int
    columns: int
    #: Letters of the two players, and of an empty cell.
    stones = ("X", "O", ".")
    _rules: Rules

    def initial_state(self) -> Position:
        return Position(self._rules)

    def position(self, moves: Any) -> Position:
        """The position after moves from the start; an error names the first that is not legal.

        Parameters
        ----------
        moves : sequence of int
            Moves from the start.

        Returns
        -------
        Position
        """
        try:
            numbers = tuple(int(move) for move in moves)
        except (TypeError, ValueError):
            raise DataError(f"moves={moves!r:.60}; expected a sequence of numbers") from None
        found = Position(self._rules, numbers)
        try:
            _ = found.board
        except ValueError as error:
            raise DataError(f"{type(self).__name__}.position: {error}") from None
        return found

    def player(self, state: Position) -> int:
        return state._facts[2]

    def legal_moves(self, state: Position) -> list[int]:
        return state.legal

    def apply(self, state: Position, move: int) -> Position:
        if move not in state.legal:
            raise DataError(f"move={move!r}; expected one of {state.legal}")
        return Position(self._rules, (*state.moves, int(move)))

    def is_over(self, state: Position) -> bool:
        return state._facts[3]

    def result(self, state: Position) -> float:
        return float(state._facts[4])

    def key(self, state: Position) -> int:
        return state._facts[5]

    def encode(self, state: Position) -> Array:
        """Planes (3, rows, columns): own stones, those of the other, and ones where the first player moves."""
        me = self.player(state)
        last = np.full_like(state.board, me == 0)
        return np.stack([state.board == me, state.board == 1 - me, last]).astype(np.float32)

    def symmetries(self, planes: Array, policy: Array) -> list[tuple[Array, Array]]:
        n = self.rows * self.columns
        found = []
        for turns in range(4):
            for mirrored in (False, True):
                cells = np.rot90(policy[:n].reshape(self.rows, self.columns), turns)
                turned = np.rot90(planes, turns, axes=(1, 2))
                if mirrored:
                    cells, turned = cells[:, ::-1], turned[:, :, ::-1]
                found.append((np.ascontiguousarray(turned), np.concatenate([cells.ravel(), policy[n:]])))
        return found

    def text(self, state: Position) -> str:
        rows = [f"{self.rows - i:2d} " + " ".join(self.stones[who] for who in row) for i, row in enumerate(state.board)]
        return "\n".join([*rows, "   " + " ".join("abcdefgh"[: self.columns])])

    def move_text(self, move: int) -> str:
        if move == self.rows * self.columns:
            return "pass"
        return f"{'abcdefgh'[move % self.columns]}{self.rows - move // self.columns}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, NativeGame) and other._rules == self._rules

    def __hash__(self) -> int:
        return hash(self._rules)

    @styled
    def plot(self, state: Position | None = None, *, values: Any = None, ax: Axes | None = None) -> Axes:
        """Draw a position, and a number for each move.

        Parameters
        ----------
        state : Position, optional
            By default the start.
        values : array (n_actions,), optional
            Numbers that are written where a move would be played, such as the visits of a search; nan leaves one out.
        """
        from matplotlib.patches import Circle

        ax = axes_of(ax)
        state = self.initial_state() if state is None else state
        self._draw_cells(ax)
        colours = ("#222222", "#FFFFFF") if self._black_and_white else (COLOURS["orange"], COLOURS["blue"])
        for i, j in np.argwhere(state.board >= 0):
            face = colours[state.board[i, j]]
            ax.add_patch(Circle((j, i), 0.4, facecolor=face, edgecolor=ink(ax), linewidth=0.8, zorder=3))
        if values is not None:
            for move, number in enumerate(np.asarray(values, dtype=np.float64)):
                at = self._cell_of(state, move)
                if at is not None and np.isfinite(number):
                    shown = f"{number:.0f}" if abs(number) >= 100 else f"{number:.2g}"
                    ax.text(at[1], at[0], shown, ha="center", va="center", fontsize=8, zorder=4)
        ax.set_xlim(-0.6, self.columns - 0.4)
        ax.set_ylim(self.rows - 0.4, -0.6)
        ax.set_aspect("equal")
        ax.grid(visible=False)
        across, down = self._axis_names()
        ax.set_xticks(range(self.columns), across)
        ax.set_yticks(range(self.rows), down)
        for side in ax.spines.values():
            side.set_visible(False)
        ax.tick_params(length=0)
        return ax

    #: Whether stones are black and white, as in Othello and Go, or in two colours.
    _black_and_white = False
    #: Whether stones lie on the crossings of lines.
    _on_crossings = False

    def _draw_cells(self, ax: Axes) -> None:
        style = {"color": ink(ax), "lw": 0.7, "alpha": 0.5, "zorder": 1}
        shift = 0.0 if self._on_crossings else -0.5
        rows, columns = (self.rows - 1, self.columns - 1) if self._on_crossings else (self.rows, self.columns)
        for i in range(rows + 1):
            ax.plot([shift, columns + shift], [i + shift, i + shift], **style)
        for j in range(columns + 1):
            ax.plot([j + shift, j + shift], [shift, rows + shift], **style)

    def _axis_names(self) -> tuple[list[str], list[str]]:
        return list("abcdefgh"[: self.columns]), [str(self.rows - i) for i in range(self.rows)]

    def _cell_of(self, state: Position, move: int) -> tuple[int, int] | None:
        """Row and column of a move on the board; None for a pass."""
        return divmod(move, self.columns) if move < self.rows * self.columns else None
