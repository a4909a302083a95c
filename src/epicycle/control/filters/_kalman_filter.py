"""`KalmanFilter`: the hidden state of a linear Gaussian system, from noisy observations of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from epicycle._native import control as native
from epicycle.control.filters._kalman_em import LEARNT, Fitted, learn
from epicycle.control.filters._kalman_result import SERIES_DOCS, KalmanFilterResult, KalmanSmootherResult
from epicycle.control.systems import _riccati as checks
from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Integer, Real, check_parameter
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
#: y, A, C, W, V, the constants of states and observations, mean and covariance of the first state.
Given = tuple[Array, Array, Array, Array, Array, Array, Array, Array, Array]


@in_catalogue("control", "G6", certificate="stationarity")
class KalmanFilter:
    r"""Linear Gaussian state-space model: filter, smoother, forecasts and maximum likelihood by EM.

    .. math:: x_{t+1} = A x_t + B u_t + b + w_t, \quad y_t = C x_t + D u_t + d + v_t, \qquad
              w_t \sim N(0, W), \; v_t \sim N(0, V), \; x_0 \sim N(\mu_0, \Sigma_0)

    NaN in y means that this entry was not observed. The observations of one time are taken one after the other, after
    a Cholesky factorisation of V, so that the only divisions are by variances of single observations; smoothing goes
    backwards over scores and inverts no covariance. Once the covariances of a model that does not change have settled
    to rounding, only means are computed.

    Parameters
    ----------
    A : array (n, n) or (T, n, n)
        Dynamics, the same for all times or one for each.
    C : array (p, n) or (T, p, n)
        What is observed of the state.
    W : array (n, n) or (T, n, n)
        Covariance of the noise of the dynamics; it may be singular.
    V : array (p, p) or (T, p, p)
        Covariance of the noise of the observations, positive definite.
    B, D : arrays (n, k) and (p, k), optional
        Effect of controls on states and observations.
    b, d : arrays (n,) and (p,), optional
        Constants.
    mean : array (n,), optional
        Mean of the first state; by default zero.
    covariance : array (n, n), optional
        Covariance of the first state; by default the stationary one, which exists if all eigenvalues of A are inside
        the unit circle.

    Attributes
    ----------
    history_ : History
        Log-likelihoods of `fit`.
    certificate_ : Certificate
        Gain of the last step of `fit`.

    Examples
    --------
    A random walk seen through noise:

    >>> import numpy as np
    >>> from epicycle.control import KalmanFilter
    >>> model = KalmanFilter(A=[[1.0]], C=[[1.0]], W=[[0.1]], V=[[1.0]], covariance=[[10.0]])
    >>> y = np.array([[1.0], [1.2], [np.nan], [0.9]])
    >>> model.filter(y).mean.round(3).ravel()
    array([0.909, 1.055, 1.055, 0.991])
    >>> model.smooth(y).mean.round(3).ravel()
    array([0.999, 1.009, 1.   , 0.991])
    """

    history_: History
    certificate_: Certificate

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
    ) -> None:
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
        self.covariance = self._stationary() if covariance is None else checks.cost("covariance", covariance, n)
        if np.linalg.eigvalsh(self.covariance).min() < -1e-10 * np.abs(self.covariance).max():
            raise DataError("covariance: expected no negative eigenvalue")

    def __repr__(self) -> str:
        n, p, k = self.A.shape[-1], self.C.shape[-2], self.B.shape[1]
        return f"KalmanFilter({n} states, {p} observed, {k} controls)"

    # ------------------------------------------------------------------------------------------------ inference

    @documented(SERIES_DOCS)
    def filter(self, y: Any, u: Any = None) -> KalmanFilterResult:
        """States given what was observed up to their time."""
        given = self._given(y, u)
        value, pm, pc, fm, fc, densities = self._filtered(given, store=True)
        return KalmanFilterResult(fm, fc, pm, pc, value, densities)

    @documented(SERIES_DOCS)
    def log_likelihood(self, y: Any, u: Any = None) -> float:
        """Log-density of the observations; needs no room for states."""
        return self._filtered(self._given(y, u), store=False)[0]

    @documented(SERIES_DOCS)
    def smooth(self, y: Any, u: Any = None) -> KalmanSmootherResult:
        """States given all observations."""
        given = self._given(y, u)
        value, pm, pc, _, fc, _ = self._filtered(given, store=True)
        return KalmanSmootherResult(*native.kalman_smoother(*given, pm, pc, fc, True), value)

    def forecast(self, y: Any, steps: int, u: Any = None) -> tuple[Array, Array]:
        """Means and covariances of the observations that follow.

        Parameters
        ----------
        y : array (T, p)
            Observations so far, NaN where there is none.
        steps : int
            How many to forecast.
        u : array (T + steps, k), optional
            Controls, also those to come.

        Returns
        -------
        mean : array (steps, p)
        covariance : array (steps, p, p)
        """
        check_parameter("forecast", "steps", steps, Integer(minimum=1))
        y = self._observations(y)
        ahead = np.vstack([y, np.full((steps, y.shape[1]), np.nan)])
        given = self._given(ahead, u)
        _, pm, pc, _, _, _ = self._filtered(given, store=True)
        C, V = (M if len(M) > 1 else np.broadcast_to(M, (len(ahead), *M.shape[1:])) for M in (given[2], given[4]))
        mean = np.einsum("tij,tj->ti", C, pm) + given[6]
        covariance = C @ pc @ C.swapaxes(1, 2) + V
        return mean[len(y) :], covariance[len(y) :]

    def sample(self, steps: int, u: Any = None, *, random_state: Seed = None) -> tuple[Array, Array]:
        """States and observations drawn from the model.

        Parameters
        ----------
        steps : int
            Number of times T.
        u : array (T, k), optional
            Controls.
        random_state : int, Generator, RandomState or None
            Seed.

        Returns
        -------
        states : array (T, n)
        observations : array (T, p)
        """
        check_parameter("sample", "steps", steps, Integer(minimum=1))
        _, A, C, W, V, a, c, mean, cov = self._given(np.zeros((steps, self.C.shape[-2])), u)
        rng = stream(random_state, "kalman")
        roots = [np.stack([checks.covariance_root(M) for M in given]) for given in (W, V)]
        x = mean + checks.covariance_root(cov) @ rng.standard_normal(len(mean))
        states, seen = np.empty((steps, len(mean))), np.empty((steps, C.shape[1]))
        noise = rng.standard_normal((steps, len(mean))), rng.standard_normal((steps, C.shape[1]))
        for t in range(steps):
            at = [M[t] if len(M) > 1 else M[0] for M in (A, C, *roots)]
            states[t], seen[t] = x, at[1] @ x + c[t] + at[3] @ noise[1][t]
            x = at[0] @ x + a[t] + at[2] @ noise[0][t]
        return states, seen

    # ------------------------------------------------------------------------------------------------ learning

    def fit(
        self,
        y: Any,
        u: Any = None,
        *,
        learn_parameters: Sequence[str] = LEARNT,
        max_iter: int = 1000,
        tol: float = 1e-6,
    ) -> KalmanFilter:
        r"""Maximum likelihood by EM: the smoother is the E-step, regressions on its moments are the M-step.

        Parameters
        ----------
        y : array (T, p), or a sequence of such arrays
            Observations of one series or of several, NaN where there is none.
        u : array (T, k), or a sequence, optional
            Controls.
        learn_parameters : sequence of str, default=("A", "C", "W", "V", "mean", "covariance")
            What is learnt; the rest stays as it is.
        max_iter : int, default=1000
            Largest number of steps.
        tol : float, default=1e-6
            Gain of a step in log-likelihood for each observation at which it ends.

        Returns
        -------
        KalmanFilter
            The fitted model, with `history_` and `certificate_`; this one stays.

        Examples
        --------
        >>> from epicycle.control import KalmanFilter
        >>> truth = KalmanFilter(A=[[0.9]], C=[[1.0]], W=[[0.2]], V=[[0.5]])
        >>> _, y = truth.sample(2000, random_state=0)
        >>> start = KalmanFilter(A=[[0.5]], C=[[1.0]], W=[[1.0]], V=[[1.0]])
        >>> fitted = start.fit(y, learn_parameters=["A", "W", "V"])
        >>> bool(abs(fitted.A[0, 0] - 0.9) < 0.03), bool((np.diff(fitted.history_["log_likelihood"]) >= 0).all())
        (True, True)
        """
        check_parameter("KalmanFilter.fit", "max_iter", max_iter, Integer(minimum=1))
        check_parameter("KalmanFilter.fit", "tol", tol, Real(0, inclusive=False))
        unknown = sorted(set(learn_parameters) - set(LEARNT))
        if unknown or not learn_parameters:
            raise DataError(f"learn_parameters: got {list(learn_parameters)}; expected some of {list(LEARNT)}")
        if any(M.ndim == 3 for M in (self.A, self.C, self.W, self.V)):
            raise DataError("fit: matrices that change with time are not learnt; expected one of each")
        several = isinstance(y, list | tuple) and len(y) > 0 and np.ndim(y[0]) == 2
        series = list(y) if several else [y]
        controls = (list(u) if several else [u]) if u is not None else [None] * len(series)
        if len(controls) != len(series):
            raise DataError(f"u: got {len(controls)} series; expected {len(series)}, one for each of y")
        found = learn(self, series, controls, tuple(learn_parameters), max_iter, tol)
        return self._concluded(found, tol)

    def _concluded(self, found: Fitted, tol: float) -> KalmanFilter:
        model = found.model
        meaning = "the last EM step raised the log-likelihood by no more for each observation: a stationary point"
        model.history_ = History(log_likelihood=found.values)
        model.certificate_ = Certificate("stationarity", found.gain, tol, meaning)
        if not model.certificate_.holds:
            warnings.warn(f"{model.certificate_}; raise max_iter", ConvergenceWarning, stacklevel=3)
        return model

    def with_parameters(self, **changed: Any) -> KalmanFilter:
        """The same model with some parameters changed.

        Parameters
        ----------
        **changed
            Arguments of the constructor.

        Returns
        -------
        KalmanFilter
        """
        names = ("A", "C", "W", "V", "B", "D", "b", "d", "mean", "covariance")
        return KalmanFilter(**{**{name: getattr(self, name) for name in names}, **changed})

    # ------------------------------------------------------------------------------------------------ inside

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

    def _filtered(self, given: Given, store: bool) -> tuple[float, Array, Array, Array, Array, Array]:
        found = native.kalman_filter(*given, store)
        if not np.isfinite(found[0]):
            raise DataError("y: the log-likelihood is no finite number; expected observations of the size of the model")
        return found

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
