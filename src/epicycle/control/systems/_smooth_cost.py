"""`SmoothCost`: a cost of trajectories as functions of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.control.systems._cost_expansion import Expansion, TrajectoryCost
from epicycle.core._exceptions import DataError

Array = np.ndarray
_SECOND = np.finfo(float).eps ** 0.25  # balances truncation and rounding of second differences


class SmoothCost(TrajectoryCost):
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

    def _total(self, X: Array, U: Array, time: int) -> Any:
        if X.ndim > 2:
            return np.array([self._total(x, u, time) for x, u in zip(X, U, strict=True)])
        return float(sum(float(self.running(x, u)) for x, u in zip(X, U, strict=False)) + float(self.final(X[-1])))

    def _expand(self, X: Array, U: Array, time: int) -> Expansion:
        n = X.shape[1]
        parts = [
            _differences(lambda z: float(self.running(z[:n], z[n:])), np.concatenate([x, u]))
            for x, u in zip(X[:-1], U, strict=True)
        ]
        g, H = (np.stack(part) for part in zip(*parts, strict=True))
        last, last_H = _differences(lambda x: float(self.final(x)), X[-1])
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
