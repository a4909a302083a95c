"""Linear splines in the hinge basis: x, and max(0, x - a_k) for every knot a_k.

The coefficient of x is the slope before the first knot, that of a hinge the change of slope at its knot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle.linear.basis._basis import Basis

__all__ = ["HingeBasis"]


@dataclass(frozen=True)
class HingeBasis(Basis):
    """The columns of X, where `linear`, then the hinges of all knots.

    knots : array of shape (m,), ascending for every column.
    owners : array of shape (m,), the column of X to which a knot belongs.
    n_features : number of columns of X.
    """

    knots: np.ndarray
    owners: np.ndarray
    n_features: int
    linear: bool = True

    @property
    def n_functions(self) -> int:
        return len(self.knots) + (self.n_features if self.linear else 0)

    def _hinges(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(np.take(X, self.owners, axis=1), dtype=np.float64) - self.knots

    def expand(self, X: np.ndarray) -> np.ndarray:
        # Function by function, each in one piece of memory, as the factorisation wants them.
        first = self.n_features if self.linear else 0
        out = np.empty((self.n_functions, len(X)))
        columns = np.array(X.T, dtype=np.float64, order="C")
        out[:first] = columns[:first]
        for i, (j, knot) in enumerate(zip(self.owners.tolist(), self.knots.tolist(), strict=True)):
            np.subtract(columns[j], knot, out=out[first + i])
        np.maximum(out[first:], 0.0, out=out[first:])
        return out.T

    def expand_sparse(self, X: np.ndarray) -> sp.csr_array:
        """The same, with the zeros of the hinges left out."""
        hinges = sp.csr_array(np.maximum(self._hinges(X), 0.0))
        return sp.hstack([sp.csr_array(X), hinges], format="csr") if self.linear else hinges

    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        """From the right at a knot. Of order two and higher it is zero everywhere else."""
        out = np.zeros((len(X), self.n_functions))
        if order > 1:
            return out
        first = self.n_features if self.linear else 0
        if self.linear:
            out[:, column] = 1.0
        out[:, first:] = (self._hinges(X) >= 0) & (self.owners == column)
        return out

    def names(self, features: list[str]) -> list[str]:
        hinges = [f"({features[j]} - {knot:.6g})+" for j, knot in zip(self.owners.tolist(), self.knots, strict=True)]
        return [*features, *hinges] if self.linear else hinges
