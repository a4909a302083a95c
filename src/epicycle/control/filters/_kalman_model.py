"""Parameters and checks of a linear Gaussian state-space model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from epicycle.control.filters._kalman_diffuse import Given, diffuse_mask
from epicycle.control.systems import _riccati as checks
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, check_parameter

Array = np.ndarray
FORMS = ("covariance", "square_root", "information")
PARAMETERS = ("A", "C", "W", "V", "B", "D", "b", "d", "mean", "covariance", "form", "diffuse")


class StateSpaceModel:
    """The system of a filter; the parameters are described where users meet them."""

    def __init__(
        self,
        A: Any,
        C: Any,
        W: Any,
        V: Any,
        *,
        B: Any = None,
        D: Any = None,
        b: Any = None,
        d: Any = None,
        mean: Any = None,
        covariance: Any = None,
        form: str = "covariance",
        diffuse: Any = None,
    ) -> None:
        check_parameter("KalmanFilter", "form", form, Choice(*FORMS))
        self.form = form
        self.A = checks.matrix("A", A)
        n = self.A.shape[-1]
        C = np.asarray(C, dtype=np.float64)
        self.C = checks.matrix("C", C, C.shape[-2] if C.ndim > 1 else None, n)
        p = self.C.shape[-2]
        self.W, self.V = checks.cost("W", W, n), checks.cost("V", V, p)
        self.b, self.d = checks.vector("b", b, n), checks.vector("d", d, p)
        controls = {np.shape(M)[-1] for M in (B, D) if M is not None}
        if len(controls) > 1:
            raise DataError(f"B, D: got {sorted(controls)} columns; expected the same number of controls")
        k = controls.pop() if controls else 0
        self.B = np.zeros((n, k)) if B is None or k == 0 else checks.matrix("B", B, n, k)
        self.D = np.zeros((p, k)) if D is None or k == 0 else checks.matrix("D", D, p, k)
        self.mean = checks.vector("mean", mean, n)
        for name, M, low in (("W", self.W, 0.0), ("V", self.V, None)):
            smallest, size = np.linalg.eigvalsh(M).min(), np.abs(M).max()
            if smallest < -1e-10 * size or (low is None and smallest <= 0):
                what = "positive definite" if low is None else "without negative eigenvalues"
                raise DataError(f"{name}: its smallest eigenvalue is {smallest:g}; expected a matrix {what}")
        self.diffuse = diffuse_mask(diffuse, n)
        self.covariance = self._first_covariance(covariance)
        if self.form == "information":
            self._check_invertible()

    def _first_covariance(self, given: Any) -> Array:
        n = self.A.shape[-1]
        if given is None:
            found = np.zeros((n, n)) if self.diffuse.all() else self._stationary()
        else:
            found = checks.cost("covariance", given, n)
        if np.linalg.eigvalsh(found).min() < -1e-10 * np.abs(found).max():
            raise DataError("covariance: expected no negative eigenvalue")
        known = ~self.diffuse
        return np.asarray(found * np.outer(known, known))

    def _check_invertible(self) -> None:
        after = np.linalg.eigvalsh(self.A @ self.A.swapaxes(-1, -2) + self.W)
        if (after.min(axis=-1) <= 1e-12 * after.max(axis=-1)).any():
            raise DataError(
                "form='information': A A' + W is singular, so that the next state has a component without variance; "
                "expected a positive definite W, an invertible A, or another form"
            )
        values = np.linalg.eigvalsh(self.covariance)
        if values.min() <= 1e-14 * values.max():
            raise DataError(
                f"form='information': the covariance of the first state has the eigenvalue {values.min():g}; expected "
                "a positive definite one, or another form"
            )

    def __repr__(self) -> str:
        n, p, k = self.A.shape[-1], self.C.shape[-2], self.B.shape[1]
        return f"KalmanFilter({n} states, {p} observed, {k} controls)"

    def _given(self, y: Any, u: Any) -> Given:
        """Everything that the kernels take, for one series."""
        y = self._observations(y)
        T, k = len(y), self.B.shape[1]
        if k == 0 and u is not None:
            raise DataError("u: got controls; expected None, since the model has neither B nor D")
        U = np.zeros((T, k))
        if k > 0:
            U = np.asarray(u if u is not None else np.empty(0), dtype=np.float64)
            if U.shape != (T, k) or not np.isfinite(U).all():
                raise DataError(f"u: got shape {U.shape}; expected ({T}, {k}), finite")
        stacked = [np.ascontiguousarray(M if M.ndim == 3 else M[None]) for M in (self.A, self.C, self.W, self.V)]
        for name, M in zip("ACWV", stacked, strict=True):
            if len(M) not in (1, T):
                raise DataError(f"y: got {T} times with {len(M)} matrices {name}; expected the same number")
        A, C, W, V = stacked
        return (y, A, C, W, V, U @ self.B.T + self.b, U @ self.D.T + self.d, self.mean, self.covariance)

    def _series(self, y: Any, u: Any) -> tuple[list[Any], list[Any]]:
        """Several series as lists, also of one."""
        several = is_several(y)
        series = list(y) if several else [y]
        controls = (list(u) if several else [u]) if u is not None else [None] * len(series)
        if len(controls) != len(series):
            raise DataError(f"u: got {len(controls)} series; expected {len(series)}, one for each of y")
        return series, controls

    def _observations(self, y: Any) -> Array:
        try:
            seen = np.ascontiguousarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError("y: expected numbers, one row for each time") from None
        p = self.C.shape[-2]
        if seen.ndim == 1 and p == 1:
            seen = seen[:, None]
        if seen.ndim != 2 or seen.shape[1] != p or len(seen) == 0:
            raise DataError(f"y: got shape {seen.shape}; expected (T, {p}) with at least one time")
        if np.isinf(seen).any():
            raise DataError("y: expected finite numbers, or NaN where nothing was observed")
        return seen

    def _stationary(self) -> Array:
        if self.A.ndim == 3 or self.W.ndim == 3:
            raise DataError("covariance=None: expected a covariance of the first state for a model that changes")
        radius = np.abs(np.linalg.eigvals(self.A)).max()
        if radius >= 1:
            raise DataError(
                f"covariance=None: A has an eigenvalue of size {radius:.6g}, so that there is no stationary "
                "distribution; expected a covariance of the first state"
            )
        return np.asarray(scipy.linalg.solve_discrete_lyapunov(self.A, self.W))


def is_several(y: Any) -> bool:
    """Whether y holds several series: a sequence of tables, or an array of three dimensions."""
    if isinstance(y, list | tuple):
        return len(y) > 0 and np.ndim(y[0]) == 2
    return np.ndim(y) == 3
