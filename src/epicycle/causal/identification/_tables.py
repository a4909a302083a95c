"""Estimates from tables of counts: the formula at the relative frequencies, or under a Dirichlet posterior.

The influence of an observation in cell c on a functional F of the cells is the derivative of F along delta_c - p. It
is taken with a step along the imaginary axis, which loses no digits: F(p + ih(delta_c - p)) = F(p) + ih F' + O(h^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epicycle.causal.identification._expression import Named
from epicycle.core._exceptions import DataError

if TYPE_CHECKING:
    from epicycle.causal.identification._identification import Identification

Array = np.ndarray
#: A table with more cells is refused: its estimate would be noise, and it would fill the memory.
MOST_CELLS = 1 << 22
STEP = 1e-30


@dataclass(frozen=True)
class Counts:
    """Counts of the values of some variables."""

    names: tuple[str, ...]
    levels: list[Array]
    table: Array

    def joint(self, p: Array) -> Named:
        return Named(self.names, p.reshape(self.table.shape))


def count_table(columns: dict[str, Array], names: tuple[str, ...]) -> Counts:
    """Counts of all combinations of values."""
    found = [np.unique(columns[name], return_inverse=True) for name in names]
    shape = tuple(len(levels) for levels, _ in found)
    cells = float(np.prod([float(k) for k in shape]))
    if cells > MOST_CELLS:
        raise DataError(
            f"data: a table of {dict(zip(names, shape, strict=True))} values has {cells:.3g} cells; expected variables "
            "with few values, or method='regression' or 'weighting'"
        )
    codes = np.ravel_multi_index([code.ravel() for _, code in found], shape)
    return Counts(names, [levels for levels, _ in found], np.bincount(codes, minlength=int(cells)).reshape(shape))


class TableFunctional:
    """The effect as a function of the probabilities of the cells."""

    def __init__(self, question: Identification, counts: Counts) -> None:
        self.question, self.counts = question, counts

    def distribution(self, p: Array) -> Array:
        """P(outcome | do(treatment), given), one row for each value of treatment and given."""
        values = self.question.averaged(self.counts.joint(p))
        return values.reshape(-1, values.shape[-1])

    def influence(self, p: Array, outcome: Array) -> Array:
        """Influence of each cell that was seen on the means, (cells, K)."""
        flat = p.ravel()
        seen = np.flatnonzero(flat)
        out = []
        for c in seen:
            direction = -flat.astype(np.complex128)
            direction[c] += 1.0
            out.append((self.distribution(flat + 1j * STEP * direction) @ outcome).imag / STEP)
        return np.array(out)

    def covariance(self, p: Array, outcome: Array, n: float) -> Array:
        """Covariance of the means of n rows by their influence."""
        psi = self.influence(p, outcome)
        weight = p.ravel()[np.flatnonzero(p.ravel())]
        return np.asarray((psi * weight[:, None]).T @ psi / n)
