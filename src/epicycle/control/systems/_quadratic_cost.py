"""`QuadraticCost`: a cost of trajectories about a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.control.systems import _riccati as riccati
from epicycle.control.systems._cost_expansion import Expansion, TrajectoryCost
from epicycle.core._exceptions import DataError

Array = np.ndarray


class QuadraticCost(TrajectoryCost):
    r"""Cost of a trajectory that is quadratic about a target.

    .. math:: \sum_{t<T} \big( (x_t - x^*)' Q (x_t - x^*) + (u_t - u^*)' R (u_t - u^*) \big)
              + (x_T - x^*)' Q_T (x_T - x^*)

    Parameters
    ----------
    Q : array (n, n)
        Cost of states, symmetric, no eigenvalue below 0.
    R : array (m, m)
        Cost of controls, symmetric and positive definite.
    Q_final : array (n, n), optional
        Cost of the last state; by default Q.
    target : array (n,) or (L, n), optional
        State :math:`x^*` to reach, or one for each time; the last row stays. By default zero.
    control_target : array (m,), optional
        Control :math:`u^*` that costs nothing; by default zero.

    Examples
    --------
    >>> from epicycle.control import QuadraticCost
    >>> cost = QuadraticCost([[1.0]], [[0.1]], target=[2.0])
    >>> float(cost.total([[0.0], [1.0]], [[1.0]]))
    5.1
    """

    def __init__(self, Q: Any, R: Any, *, Q_final: Any = None, target: Any = None, control_target: Any = None) -> None:
        n, m = (len(riccati.matrix(name, M)) for name, M in (("Q", Q), ("R", R)))
        self.Q, self.R = riccati.cost("Q", Q, n), riccati.cost("R", R, m)
        self.Q_final = self.Q if Q_final is None else riccati.cost("Q_final", Q_final, n)
        if self.Q.ndim != 2 or self.R.ndim != 2 or self.Q_final.ndim != 2:
            raise DataError("Q, R, Q_final: expected single matrices")
        riccati.check_costs(self.Q, np.zeros((n, m)), self.R)
        riccati.semidefinite("Q_final", self.Q_final)
        self.target = np.zeros((1, n)) if target is None else np.atleast_2d(np.asarray(target, dtype=np.float64))
        if self.target.ndim != 2 or self.target.shape[1] != n or not np.isfinite(self.target).all():
            raise DataError(f"target: got shape {np.shape(target)}; expected ({n},) or (times, {n}), finite")
        self.control_target = riccati.vector("control_target", control_target, m)

    def __repr__(self) -> str:
        return f"QuadraticCost({len(self.Q)} states, {len(self.R)} controls)"

    def _off(self, X: Array, time: int) -> Array:
        """Distances from the target of states (..., T + 1, n) from this time on."""
        at = np.minimum(time + np.arange(X.shape[-2]), len(self.target) - 1)
        return np.asarray(X - self.target[at])

    def _total(self, X: Array, U: Array, time: int) -> Any:
        off, u = self._off(X, time), U - self.control_target
        before, last = off[..., :-1, :], off[..., -1, :]
        running = ((before @ self.Q) * before).sum(axis=(-1, -2)) + ((u @ self.R) * u).sum(axis=(-1, -2))
        return running + ((last @ self.Q_final) * last).sum(axis=-1)

    def _expand(self, X: Array, U: Array, time: int) -> Expansion:
        off, T = self._off(X, time), len(U)
        n, m = len(self.Q), len(self.R)
        return Expansion(
            lx=2 * off[:-1] @ self.Q,
            lu=2 * (U - self.control_target) @ self.R,
            lxx=np.broadcast_to(2 * self.Q, (T, n, n)),
            luu=np.broadcast_to(2 * self.R, (T, m, m)),
            lux=np.zeros((T, m, n)),
            final_x=2 * off[-1] @ self.Q_final,
            final_xx=2 * self.Q_final,
        )
