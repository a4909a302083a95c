"""Rows that come batch by batch: the triangular factors of two sets of rows add up to that of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import engine
from epicycle.core._memory import require_memory
from epicycle.data import Data
from epicycle.stats._moments import CentredFactor, TriangularFactor, centred_factor, factor_statistic, shift_of


@dataclass(frozen=True)
class RowsSoFar:
    """The factor of all rows sqrt(w) (1, x - shift), their weight, and how many there are."""

    R: np.ndarray
    shift: np.ndarray
    weight: float
    n_rows: int

    def and_rows(self, data: Data, n_jobs: int | None) -> RowsSoFar:
        """With the rows of `data`, too."""
        factor, weight, n, _ = engine.sum(factor_statistic, data, self.shift, True, n_jobs=n_jobs)
        R = (TriangularFactor(self.R) + factor).R
        return RowsSoFar(R, self.shift, self.weight + weight, self.n_rows + n)

    def centred(self) -> CentredFactor:
        """The factor about the mean of all rows."""
        return centred_factor(self.R, self.shift, len(self.shift), self.weight, self.n_rows)


def no_rows(data: Data) -> RowsSoFar:
    """Before the first batch, which says about what point rows are summed."""
    p = data.n_features
    require_memory(8.0 * (p + 1) ** 2 * 4, f"the {p + 1} x {p + 1} factor of the rows", "use fit with n_components")
    return RowsSoFar(np.zeros((0, p + 1)), shift_of(data, targets=False), 0.0, 0)
