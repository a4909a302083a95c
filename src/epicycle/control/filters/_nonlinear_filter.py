"""Common parts of filters of nonlinear systems: the model, its checks, and a loop over times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.control.filters._kalman_result import SERIES_DOCS, KalmanFilterResult
from epicycle.control.systems import _riccati as checks
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError

Array = np.ndarray
Function = Callable[..., Any]


class NonlinearFilter:
    """System x(t + 1) = f(x(t), u(t)) + w(t), y(t) = h(x(t)) + v(t) with Gaussian noise."""

    _docs: ClassVar[Mapping[str, str]] = {
        **SERIES_DOCS,
        "f": "f : callable\n    Dynamics ``f(x)``, or ``f(x, u)`` with controls.",
        "h": "h : callable\n    Observation ``h(x)``.",
        "W": "W : array of shape (n, n)\n    Covariance of the noise of the dynamics.",
        "V": "V : array of shape (p, p)\n    Covariance of the noise of the observations.",
        "mean": "mean : array of shape (n,)\n    Mean of the first state.",
        "covariance": "covariance : array of shape (n, n)\n    Covariance of the first state.",
    }

    def __init__(self, f: Function, h: Function, W: Any, V: Any, *, mean: Any, covariance: Any) -> None:
        for name, function in (("f", f), ("h", h)):
            if not callable(function):
                raise DataError(f"{name}: got {type(function).__name__}; expected a function")
        self.f, self.h = f, h
        n = len(np.atleast_1d(np.asarray(mean)))
        self.mean = checks.vector("mean", mean, n)
        self.W, self.covariance = checks.cost("W", W, n), checks.cost("covariance", covariance, n)
        V = np.asarray(V, dtype=np.float64)
        self.V = checks.cost("V", V, V.shape[-1] if V.ndim else 1)
        for name, M, strict in (("W", self.W, False), ("V", self.V, True), ("covariance", self.covariance, False)):
            low = np.linalg.eigvalsh(M).min()
            if low < -1e-10 * np.abs(M).max() or (strict and low <= 0):
                raise DataError(f"{name}: its smallest eigenvalue is {low:g}; expected a covariance")

    def _observations(self, y: Any, u: Any) -> tuple[Array, list[Any]]:
        seen = np.asarray(y, dtype=np.float64)
        p = len(self.V)
        if seen.ndim == 1 and p == 1:
            seen = seen[:, None]
        if seen.ndim != 2 or seen.shape[1] != p or len(seen) == 0 or np.isinf(seen).any():
            raise DataError(f"y: got shape {seen.shape}; expected (T, {p}), finite or NaN where nothing was observed")
        if u is None:
            return seen, [None] * len(seen)
        controls = np.asarray(u, dtype=np.float64)
        if len(controls) != len(seen) or not np.isfinite(controls).all():
            raise DataError(f"u: got {len(controls)} rows; expected {len(seen)}, finite")
        return seen, list(controls)

    def _dynamics(self, u: Any) -> Function:
        """f as a function of the state alone."""
        return self.f if u is None else lambda x: self.f(x, u)


class GaussianFilter(NonlinearFilter, ABC):
    """Filter that keeps a mean and a covariance."""

    @documented(SERIES_DOCS)
    def filter(self, y: Any, u: Any = None) -> KalmanFilterResult:
        """States given what was observed up to their time."""
        seen, controls = self._observations(y, u)
        x, P = self.mean, self.covariance
        rows: list[tuple[Array, Array, Array, Array, float]] = []
        for now, control in zip(seen, controls, strict=True):
            known = ~np.isnan(now)
            after, Q, density = self._update(x, P, now, known) if known.any() else (x, P, 0.0)
            rows.append((after, Q, x, P, density))
            x, P = self._predict(after, Q, self._dynamics(control))
        fm, fc, pm, pc, densities = (np.stack(column) for column in zip(*rows, strict=True))
        return KalmanFilterResult(fm, fc, pm, pc, float(densities.sum()), densities)

    @abstractmethod
    def _predict(self, x: Array, P: Array, f: Function) -> tuple[Array, Array]:
        """Mean and covariance of the next state."""

    @abstractmethod
    def _update(self, x: Array, P: Array, y: Array, known: Array) -> tuple[Array, Array, float]:
        """Mean and covariance given the known entries of y, and their log-density."""


def conditioned(x: Array, P: Array, error: Array, cross: Array, S: Array) -> tuple[Array, Array, float]:
    """Mean and covariance after an observation with this error, covariance with the state and own covariance."""
    L = np.linalg.cholesky(S)
    K, e = np.linalg.solve(L, cross.T).T, np.linalg.solve(L, error)
    density = -0.5 * (e @ e + len(e) * np.log(2 * np.pi)) - np.log(np.diag(L)).sum()
    after = P - K @ K.T
    return x + K @ e, (after + after.T) / 2, float(density)
