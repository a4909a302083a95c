"""Games in normal form: every player picks an action, all at once, and tables say what each gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray


@dataclass(frozen=True)
class NormalForm:
    """Payoff tables of n players, each with one axis for the actions of each player.

    payoffs : array (n, a_1, ..., a_n).
    """

    payoffs: Array

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.payoffs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of actions of the players."""
        return self.payoffs.shape[1:]

    @property
    def is_zero_sum(self) -> bool:
        """Whether one of two players gets what the other loses."""
        return self.n_players == 2 and bool(np.array_equal(self.payoffs[0], -self.payoffs[1]))

    @property
    def spread(self) -> float:
        """Largest range of the payoffs of a player."""
        return max(float(np.ptp(table)) for table in self.payoffs) or 1.0

    def action_values(self, player: int, strategies: list[Array]) -> Array:
        """Mean payoff of each action of a player against strategies of the others."""
        table = np.moveaxis(self.payoffs[player], player, 0)
        for other in range(self.n_players - 1, -1, -1):
            if other != player:
                table = table @ strategies[other]
        return np.asarray(table)

    def values(self, strategies: list[Array]) -> Array:
        """Mean payoff of each player."""
        return np.array([self.action_values(i, strategies) @ strategies[i] for i in range(self.n_players)])

    def gains(self, strategies: list[Array]) -> Array:
        """Gain of each player by a best reply; all are zero in a Nash equilibrium."""
        best = [self.action_values(i, strategies) for i in range(self.n_players)]
        return np.array([max(float(v.max() - v @ p), 0.0) for v, p in zip(best, strategies, strict=True)])

    def joint_gains(self, joint: Array) -> Array:
        """Gain of each by one fixed action while the others follow a joint distribution of actions.

        All are at most zero in a coarse correlated equilibrium.
        """
        found = []
        for i in range(self.n_players):
            others = joint.sum(axis=i)
            table = np.moveaxis(self.payoffs[i], i, 0).reshape(self.sizes[i], -1)
            found.append(float((table @ others.ravel()).max() - (self.payoffs[i] * joint).sum()))
        return np.array(found)


def as_normal_form(game: Any) -> NormalForm:
    """A matrix as a zero-sum game of two, or one table for each player."""
    try:
        given = np.asarray(game, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"game: got {type(game).__name__}; expected a Game, a matrix, or a payoff table for each player"
        ) from None
    if given.ndim == 2:
        given = np.stack([given, -given])
    if given.ndim < 3 or len(given) != given.ndim - 1 or not given.size:
        raise DataError(f"game: got shape {given.shape}; expected (m, n), or (2, m, n), (3, a, b, c), ... for players")
    if not np.isfinite(given).all():
        raise DataError("game: payoffs have to be finite; found nan or inf")
    return NormalForm(given)
