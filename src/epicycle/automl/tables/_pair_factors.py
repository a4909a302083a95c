"""Factors of pairs of levels, such as users and films:  y ~ mu + b_u + c_i + x_u'z_i  by alternating least squares.

A level that the fit has not seen has zeros: a pair of two new levels is expected to be like the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epicycle.recommend import CollaborativeFiltering

#: Factors of each level; their penalty grows with its rows, so that rare levels keep little more than their bias.
_FACTORS = 20
#: A feature needs no stationary point: the predictions hardly change after these rounds and below this gradient.
_ROUNDS, _TOL = 30, 1e-2
#: Pairs of known levels from which factors are learnt.
_LEAST_PAIRS = 1_000


@dataclass(frozen=True)
class PairFactors:
    """Facts about each level; the last row is that of levels which are missing or new.

    rows, columns : arrays of shape (n_levels + 1, n_factors + 1)
        Factors and bias of the levels of the two columns.
    mean : of all targets.
    range : the least and the greatest target, which bound what is predicted.
    """

    rows: np.ndarray
    columns: np.ndarray
    mean: float
    range: tuple[float, float]

    def predict(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The expected target of pairs by the numbers of their levels, -1 where there is none."""
        x, z = self.rows[rows], self.columns[columns]
        said = self.mean + x[:, -1] + z[:, -1] + np.einsum("ij,ij->i", x[:, :-1], z[:, :-1])
        return np.asarray(np.clip(said, *self.range))


def pair_of(sizes: Sequence[int]) -> tuple[int, int] | None:
    """The two columns with the most levels, in their order; None where there is one alone."""
    if len(sizes) < 2:
        return None
    first, second = sorted(np.argsort(-np.asarray(sizes), kind="stable")[:2].tolist())
    return first, second


def pair_factors(
    rows: np.ndarray, columns: np.ndarray, y: np.ndarray, weight: np.ndarray, sizes: tuple[int, int]
) -> PairFactors | None:
    """Learn the factors of rows by the numbers of their two levels; None where few rows have both, or y is constant."""
    known = (rows >= 0) & (columns >= 0) & (weight > 0)
    if known.sum() < _LEAST_PAIRS or np.ptp(y[known]) == 0:
        return None
    model = CollaborativeFiltering(n_factors=_FACTORS, max_iter=_ROUNDS, tol=_TOL, random_state=0, n_jobs=1)
    pairs = np.column_stack([rows, columns])[known]
    given = {} if (weight == 1).all() else {"sample_weight": weight[known]}
    model.fit(pairs, y[known], **given)
    sides = []
    for size, ids, factors, bias in (
        (sizes[0], model.users_, model.user_factors_, model.user_bias_),
        (sizes[1], model.items_, model.item_factors_, model.item_bias_),
    ):
        side = np.zeros((size + 1, _FACTORS + 1))
        side[np.asarray(ids).astype(np.intp)] = np.column_stack([factors, bias])
        sides.append(side)
    return PairFactors(sides[0], sides[1], float(model.mean_), (float(y[known].min()), float(y[known].max())))
