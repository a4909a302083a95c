"""The steps of matching pursuit, in covariance form.

With r = y - Xw and q_j = <x_j, r>, a step chooses a feature and changes coefficients:

- matching: the largest |q_j| / |x_j|; its coefficient alone moves, w_j += rate q_j / |x_j|^2, and q -= d G_j.
- orthogonal: the same choice; then all chosen coefficients are the least-squares ones.
- forward: the feature after which the residuals of least squares are smallest, the largest q_j^2 / |x_j'|^2 with x_j'
  what is left of x_j beside the chosen features.

For the last two, the chosen features are made orthonormal one by one (Gram-Schmidt): with G_AA = LL' and V = L^-1 G_A,
a new feature adds a row v to V, its share of r is c = q_j / l, and q -= c v.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from epicycle.linear.lars._stagewise_moves import gram_rows
from epicycle.linear.lasso._solver import LassoSolver

__all__ = ["METHODS", "Pursuit"]

METHODS = ("matching", "orthogonal", "forward")
#: A feature of which no more than this is left beside the chosen ones is a combination of them.
DEPENDENT = 1e-10


class Pursuit:
    """The state of a pursuit; :meth:`step` goes on with it.

    Attributes
    ----------
    active : list of int
        Features in the order in which they were first chosen.
    half_square : float
        Half the mean square of the residuals.
    """

    def __init__(self, solver: LassoSolver, method: str, rate: float) -> None:
        self.solver, self.method, self.rate = solver, method, rate
        self.rows = gram_rows(solver)
        self.q = np.where(solver.square > 0, solver.xy, 0.0)
        self.left = solver.square.copy()  # |x_j'|^2
        self.w = np.zeros(solver.p)
        self.active: list[int] = []
        self.half_square = solver.yy / 2
        self._V = np.empty((0, solver.p))
        self._L = np.empty((0, 0))
        self._c: list[float] = []

    def choose(self) -> int | None:
        """The feature of the next step; None where no feature has anything to give."""
        scale = self.left if self.method == "forward" else self.solver.square
        usable = self.left > DEPENDENT * self.solver.square
        gain = np.divide(self.q**2, scale, out=np.zeros_like(scale), where=usable & (scale > 0))
        j = int(gain.argmax())
        # Less than the rounding of y itself is nothing.
        return j if gain[j] > 1e-28 * self.solver.yy else None

    def step(self, j: int) -> float:
        """Take feature j; its correlation with the residuals before."""
        self.rows.need(j)
        row = self.rows.rows[self.rows.row_of[j]]
        correlation = float(abs(self.q[j]) / np.sqrt(self.solver.square[j]))
        if self.method == "matching":
            d = self.rate * self.q[j] / self.solver.square[j]
            self.w[j] += d
            self.half_square -= d * self.q[j] - d * d * self.solver.square[j] / 2
            self.q = np.where(self.solver.square > 0, self.q - d * row, 0.0)
            if j not in self.active:
                self.active.append(j)
            return correlation
        k = len(self.active)
        along = self._V[:k, j]
        length = np.sqrt(self.left[j])
        v = (row - along @ self._V[:k]) / length
        share = float(self.q[j] / length)
        self._grow(k, v, along, length)
        self._c.append(share)
        self.active.append(j)
        self.left = np.maximum(self.left - v * v, 0.0)
        self.q = np.where(self.solver.square > 0, self.q - share * v, 0.0)
        self.left[self.active] = 0.0
        self.q[self.active] = 0.0
        self.half_square -= share * share / 2
        self.w[self.active] = solve_triangular(self._L[: k + 1, : k + 1], np.array(self._c), trans="T", lower=True)
        return correlation

    def _grow(self, k: int, v: np.ndarray, along: np.ndarray, length: float) -> None:
        if k == len(self._V):
            capacity = min(max(8, 2 * k), self.solver.p)
            V, L = np.empty((capacity, self.solver.p)), np.zeros((capacity, capacity))
            V[:k], L[:k, :k] = self._V, self._L
            self._V, self._L = V, L
        self._V[k], self._L[k, :k], self._L[k, k] = v, along, length
