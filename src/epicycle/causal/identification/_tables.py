"""Estimates from tables of counts: the formula at the relative frequencies, or under a Dirichlet posterior.

The influence of an observation in cell c on a functional F of the cells is the derivative of F along delta_c - p. It
is taken with a step along the imaginary axis, which loses no digits: F(p + ih(delta_c - p)) = F(p) + ih F' + O(h^2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from epicycle.causal.identification._expression import BATCH, Named
from epicycle.core._exceptions import DataError

if TYPE_CHECKING:
    from epicycle.causal.identification._identification import Identification

Array = np.ndarray
#: A table with more cells is refused: its estimate would be noise, and it would fill the memory.
MOST_CELLS = 1 << 22
#: Entries of the arrays of many joint distributions that are worked on at once.
BLOCK_ENTRIES = 1 << 20
#: Entries of all tables that the influence of the cells is read off: some minutes of one processor.
MOST_WORK = 1e9
STEP = 1e-30


@dataclass(frozen=True)
class Counts:
    """Counts of the values of some variables."""

    names: tuple[str, ...]
    levels: list[Array]
    table: Array


def count_table(columns: dict[str, Array], names: tuple[str, ...], weight: Array | None = None) -> Counts:
    """Counts of all combinations of values, or sums of weights."""
    found = [np.unique(columns[name], return_inverse=True) for name in names]
    shape = tuple(len(levels) for levels, _ in found)
    cells = float(np.prod([float(k) for k in shape]))
    if cells > MOST_CELLS:
        raise DataError(
            f"data: a table of {dict(zip(names, shape, strict=True))} values has {cells:.3g} cells; expected variables "
            "with few values, or method='regression' or 'weighting'"
        )
    codes = np.ravel_multi_index([code.ravel() for _, code in found], shape)
    return Counts(
        names, [levels for levels, _ in found], np.bincount(codes, weight, minlength=int(cells)).reshape(shape)
    )


class TableFunctional:
    """The effect as a function of the probabilities of the cells."""

    def __init__(self, question: Identification, counts: Counts) -> None:
        self.question, self.counts = question, counts

    def distribution(self, p: Array) -> Array:
        """P(outcome | do(treatment), given), one row for each value of treatment and given."""
        return np.asarray(self.distributions(p.reshape(-1, 1))[0])

    def distributions(self, P: Array) -> Array:
        """The same for each column of probabilities, (columns, K, L)."""
        joint = Named((*self.counts.names, BATCH), P.reshape(*self.counts.table.shape, -1))
        values = self.question.averaged(joint)
        return np.moveaxis(values.reshape(-1, *values.shape[-2:]), -1, 0)

    def means(self, columns: Iterator[Array], outcome: Array) -> Array:
        """Means of the outcome for each column of probabilities, (columns, K), a block of columns at a time."""
        width = max(1, BLOCK_ENTRIES // self.counts.table.size)
        out = []
        while block := list(islice(columns, width)):
            out.append(np.einsum("bkl,l->bk", self.distributions(np.stack(block, axis=1)), outcome))
        return np.concatenate(out)

    def influence(self, p: Array, outcome: Array) -> Array:
        """Influence of each cell that was seen on the means, (cells, K)."""
        flat = p.ravel()
        work = float(np.count_nonzero(flat)) * flat.size
        if work > MOST_WORK:
            raise DataError(
                f"data: the influence of {np.count_nonzero(flat):,} cells on a table of {flat.size:,} takes {work:.1e} "
                "steps; expected variables with fewer values, or interval='bootstrap' or 'posterior'"
            )

        def moved(c: np.intp) -> Array:
            direction = -flat.astype(np.complex128)
            direction[c] += 1.0
            return flat + 1j * STEP * direction

        return self.means((moved(c) for c in np.flatnonzero(flat)), outcome).imag / STEP

    def covariance(self, p: Array, outcome: Array, n: float) -> Array:
        """Covariance of the means of n rows by their influence."""
        psi = self.influence(p, outcome)
        weight = p.ravel()[np.flatnonzero(p.ravel())]
        return np.asarray((psi * weight[:, None]).T @ psi / n)
