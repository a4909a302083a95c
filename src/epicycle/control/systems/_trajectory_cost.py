"""Costs of trajectories: quadratic ones about a target, and smooth functions of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.control.systems import _riccati as riccati
from epicycle.core._exceptions import DataError

Array = np.ndarray
_SECOND = np.finfo(float).eps ** 0.25  # balances truncation and rounding of second differences


@dataclass(frozen=True)
class Expansion:
    """Gradients and Hessians of the costs of all steps, and of the last state."""

    lx: Array
    lu: Array
    lxx: Array
    luu: Array
    lux: Array
    final_x: Array
    final_xx: Array


class QuadraticCost:
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
        low = float(np.linalg.eigvalsh(self.Q_final).min())
        if low < -1e-10 * np.abs(self.Q_final).max():
            raise DataError(f"Q_final: its smallest eigenvalue is {low:g}; expected none below 0")
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

    def total(self, states: Any, controls: Any, *, time: int = 0) -> Any:
        """Cost of a trajectory, or of several.

        Parameters
        ----------
        states : array (..., T + 1, n)
            States.
        controls : array (..., T, m)
            Controls.
        time : int, default=0
            Time of the first state, where the target changes with time.

        Returns
        -------
        float or array (...)
        """
        off = self._off(np.asarray(states, dtype=np.float64), time)
        u = np.asarray(controls, dtype=np.float64) - self.control_target
        before, last = off[..., :-1, :], off[..., -1, :]
        running = ((before @ self.Q) * before).sum(axis=(-1, -2)) + ((u @ self.R) * u).sum(axis=(-1, -2))
        return running + ((last @ self.Q_final) * last).sum(axis=-1)

    def expand(self, states: Array, controls: Array, *, time: int = 0) -> Expansion:
        """Gradients and Hessians along a trajectory.

        Parameters
        ----------
        states : array (T + 1, n)
            States.
        controls : array (T, m)
            Controls.
        time : int, default=0
            Time of the first state.

        Returns
        -------
        Expansion
        """
        off, T = self._off(states, time), len(controls)
        n, m = len(self.Q), len(self.R)
        return Expansion(
            lx=2 * off[:-1] @ self.Q,
            lu=2 * (controls - self.control_target) @ self.R,
            lxx=np.broadcast_to(2 * self.Q, (T, n, n)),
            luu=np.broadcast_to(2 * self.R, (T, m, m)),
            lux=np.zeros((T, m, n)),
            final_x=2 * off[-1] @ self.Q_final,
            final_xx=2 * self.Q_final,
        )


class SmoothCost:
    """Cost of a trajectory as functions of the user's own, with derivatives by central differences.

    Parameters
    ----------
    running : callable
        ``running(x, u)``, a number, for every step.
    final : callable, optional
        ``final(x)``, a number, for the last state; by default zero.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import SmoothCost
    >>> cost = SmoothCost(lambda x, u: 1 - np.cos(x[0]) + 0.01 * u[0] ** 2)
    >>> round(float(cost.total([[0.0], [np.pi]], [[1.0]])), 6)
    0.01
    """

    def __init__(self, running: Callable[..., Any], final: Callable[..., Any] | None = None) -> None:
        for name, function in (("running", running), ("final", final)):
            if not callable(function) and not (name == "final" and function is None):
                raise DataError(f"{name}: got {type(function).__name__}; expected a function")
        self.running = running
        self.final = final if final is not None else lambda _: 0.0

    def total(self, states: Any, controls: Any, *, time: int = 0) -> Any:
        """Cost of a trajectory, or of several.

        Parameters
        ----------
        states : array (..., T + 1, n)
            States.
        controls : array (..., T, m)
            Controls.
        time : int, default=0
            Without effect; these costs do not change with time.

        Returns
        -------
        float or array (...)
        """
        X, U = np.asarray(states, dtype=np.float64), np.asarray(controls, dtype=np.float64)
        if X.ndim > 2:
            return np.array([self.total(x, u) for x, u in zip(X, U, strict=True)])
        return float(sum(float(self.running(x, u)) for x, u in zip(X, U, strict=False)) + float(self.final(X[-1])))

    def expand(self, states: Array, controls: Array, *, time: int = 0) -> Expansion:
        """Gradients and Hessians along a trajectory.

        Parameters
        ----------
        states : array (T + 1, n)
            States.
        controls : array (T, m)
            Controls.
        time : int, default=0
            Without effect.

        Returns
        -------
        Expansion
        """
        n = states.shape[1]
        parts = [
            _differences(lambda z: float(self.running(z[:n], z[n:])), np.concatenate([x, u]))
            for x, u in zip(states[:-1], controls, strict=True)
        ]
        g, H = (np.stack(part) for part in zip(*parts, strict=True))
        last, last_H = _differences(lambda x: float(self.final(x)), states[-1])
        return Expansion(g[:, :n], g[:, n:], H[:, :n, :n], H[:, n:, n:], H[:, n:, :n], last, last_H)


def _differences(f: Callable[[Array], float], z: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of a function of a vector by central differences."""
    n = len(z)
    steps = _SECOND * np.maximum(1.0, np.abs(z))
    moves = np.diag(steps)
    middle = f(z)
    up, down = np.array([f(z + d) for d in moves]), np.array([f(z - d) for d in moves])
    gradient, H = (up - down) / (2 * steps), np.diag((up + down - 2 * middle) / steps**2)
    for i in range(n):
        for j in range(i):
            a, b = moves[i], moves[j]
            mixed = f(z + a + b) - f(z + a - b) - f(z - a + b) + f(z - a - b)
            H[i, j] = H[j, i] = mixed / (4 * steps[i] * steps[j])
    return gradient, H
