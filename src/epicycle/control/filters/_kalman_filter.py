"""`KalmanFilter`: the hidden state of a linear Gaussian system, from noisy observations of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epicycle.control.filters._kalman_diffuse import (
    EVERYTHING,
    NOTHING,
    SMOOTHER,
    Given,
    augmented_filter,
    augmented_smoother,
    filtered,
    smoothed,
)
from epicycle.control.filters._kalman_em import LEARNT, OFFSETS, Fitted, learn, moments
from epicycle.control.filters._kalman_likelihood import climb, score
from epicycle.control.filters._kalman_model import FORMS, PARAMETERS, StateSpaceModel, is_several
from epicycle.control.filters._kalman_result import SERIES_DOCS, KalmanFilterResult, KalmanSmootherResult
from epicycle.control.systems import _riccati as checks
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Integer, Real, check_parameter
from epicycle.core._random import Seed, stream
from epicycle.core._threads import helper_pool, n_threads
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G6", certificate="stationarity")
class KalmanFilter(StateSpaceModel):
    r"""Linear Gaussian state-space model: filter, smoother, forecasts and maximum likelihood.

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
    form : {"covariance", "square_root", "information"}, default="covariance"
        What the filter carries from one time to the next: the covariance, a root of it, which keeps it without negative
        eigenvalues where rounding would not, or its inverse, for which the covariances of the first state and of all
        that follow have to be positive definite. The results are the same.
    diffuse : bool or array of components (indices or mask), optional
        Components of the first state of which nothing is known: the exact limit of an infinite variance. The
        log-likelihood is that of the data up to the factor by which such a prior vanishes (Durbin and Koopman).

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

    _docs = SERIES_DOCS

    history_: History
    certificate_: Certificate

    # ------------------------------------------------------------------------------------------------ inference

    def filter(self, y: Any, u: Any = None, *, n_jobs: int | None = None) -> Any:
        """States given what was observed up to their time.

        Returns
        -------
        KalmanFilterResult, or a list of them for several series
        """

        def one(series: Any, controls: Any) -> KalmanFilterResult:
            value, pm, pc, fm, fc, densities = self._filtered(self._given(series, controls), EVERYTHING)
            return KalmanFilterResult(fm, fc, pm, pc, value, densities)

        return self._each(one, y, u, n_jobs)

    def log_likelihood(self, y: Any, u: Any = None, *, n_jobs: int | None = None) -> Any:
        """Log-density of the observations; needs no room for states.

        Returns
        -------
        float, or array with one entry for each of several series
        """
        found = self._each(lambda s, c: self._filtered(self._given(s, c), NOTHING)[0], y, u, n_jobs)
        return np.array(found) if isinstance(found, list) else found

    def smooth(self, y: Any, u: Any = None, *, n_jobs: int | None = None) -> Any:
        """States given all observations.

        Returns
        -------
        KalmanSmootherResult, or a list of them for several series
        """

        def one(series: Any, controls: Any) -> KalmanSmootherResult:
            given = self._given(series, controls)
            if self.diffuse.any():
                return KalmanSmootherResult(*augmented_smoother(given, self.diffuse, FORMS.index(self.form)))
            value, pm, pc, _, fc, _ = self._filtered(given, SMOOTHER)
            return KalmanSmootherResult(*smoothed(given, pm, pc, fc), value)

        return self._each(one, y, u, n_jobs)

    def gradient(
        self, y: Any, u: Any = None, *, parameters: Sequence[str] = LEARNT, n_jobs: int | None = None
    ) -> dict[str, Array]:
        r"""Derivatives of the log-likelihood, summed over series, from one pass of the smoother.

        By Fisher's identity they are the expected derivatives of the log-density of states and observations together,

        .. math:: \frac{\partial}{\partial \theta} \log p(y) = \mathrm{E}\Big[\frac{\partial}{\partial \theta}
                  \log p(x, y) \,\Big|\, y\Big] .

        Parameters
        ----------
        parameters : sequence of str, default=("A", "C", "W", "V", "mean", "covariance")
            With respect to which, also "B", "b", "D" and "d"; W and the covariance of the first state have to be
            positive definite for theirs.

        Returns
        -------
        dict of arrays
            G with the shape of each parameter; for a covariance M that of trace(G' dM) over symmetric changes.
        """
        self._check_learnt("gradient", parameters)
        found = moments(self, *self._series(y, u), n_jobs)
        return score(self, found, tuple(parameters))

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
        _, pm, pc, _, _, _ = self._filtered(given, EVERYTHING)
        # Of the forecast steps alone: covariances of the first steps are infinite after a diffuse start.
        C, d, V = (M[len(y) :] if len(M) > 1 else M for M in (given[2], given[6], given[4]))
        mean = (C @ pm[len(y) :, :, None])[:, :, 0] + d
        covariance = C @ pc[len(y) :] @ C.swapaxes(1, 2) + V
        return mean, covariance

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
        method: str = "em",
        learn_parameters: Sequence[str] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ) -> KalmanFilter:
        r"""Maximum likelihood, by EM or by the gradient.

        Parameters
        ----------
        y : array (T, p), or several: a sequence of such arrays, or an array (M, T, p)
            Observations, NaN where there is none.
        u : array (T, k), or several, optional
            Controls.
        method : {"em", "ml"}, default="em"
            EM: the smoother is the E-step, regressions on its moments are the M-step. Or some steps of EM and then
            limited-memory BFGS along `gradient`, over roots of the covariances: far quicker near the maximum.
        learn_parameters : sequence of str, optional
            What is learnt, the rest stays as it is; by default A, C, W, V and, unless it is diffuse, the mean and
            covariance of the first state. Also B, b, D and d can be.
        max_iter : int, default=1000
            Largest number of steps.
        tol : float, default=1e-6
            Gain of an EM step in log-likelihood for each observation at which it ends; with method="ml" the largest
            derivative for each observation.
        n_jobs : int, optional
            Threads over the series; the bits do not depend on them.

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
        check_parameter("KalmanFilter.fit", "method", method, Choice("em", "ml"))
        names = tuple(learn_parameters) if learn_parameters is not None else self._learnt_by_default()
        self._check_learnt("fit", names)
        series, controls = self._series(y, u)
        found = (learn if method == "em" else climb)(self, series, controls, names, max_iter, tol, n_jobs)
        return self._concluded(found, tol)

    def _learnt_by_default(self) -> tuple[str, ...]:
        return LEARNT if not self.diffuse.any() else LEARNT[:4]

    def _check_learnt(self, caller: str, names: Sequence[str]) -> None:
        unknown = sorted(set(names) - {*LEARNT, *OFFSETS})
        if unknown or not names:
            raise DataError(f"learn_parameters: got {list(names)}; expected some of {[*LEARNT, *OFFSETS]}")
        if any(M.ndim == 3 for M in (self.A, self.C, self.W, self.V)):
            raise DataError(f"{caller}: matrices that change with time are not learnt; expected one of each")
        if self.diffuse.any() and {"mean", "covariance"} & set(names):
            raise DataError(f"{caller}: mean and covariance of a diffuse start are not learnt; expected other names")

    def _concluded(self, found: Fitted, tol: float) -> KalmanFilter:
        model = found.model
        model.history_ = History(log_likelihood=found.values)
        model.certificate_ = Certificate("stationarity", found.gain, tol, found.meaning)
        if not model.certificate_.holds:
            warnings.warn(f"{model.certificate_}; raise max_iter", ConvergenceWarning, stacklevel=3)
        return model

    def with_parameters(self, **changed: Any) -> KalmanFilter:
        """The same model with some parameters changed.

        Parameters
        ----------
        **changed
            Arguments of the constructor.
        """
        return KalmanFilter(**{**{name: getattr(self, name) for name in PARAMETERS}, **changed})

    # ------------------------------------------------------------------------------------------------ inside

    def _filtered(self, given: Given, store: int) -> tuple[float, Array, Array, Array, Array, Array]:
        form = FORMS.index(self.form)
        if self.diffuse.any():
            return augmented_filter(given, self.diffuse, form)
        found = filtered(given, store, form)
        if not np.isfinite(found[0]):
            raise DataError(
                "y: the log-likelihood is no finite number; expected observations of the size of the model, or "
                "form='square_root' where precise observations meet a vague start"
            )
        return found

    def _each(self, one: Callable[[Any, Any], Any], y: Any, u: Any, n_jobs: int | None) -> Any:
        """The result of a function for one series, or a list for several, which threads share."""
        series, controls = self._series(y, u)
        if not is_several(y):
            return one(y, u)
        n = self.A.shape[-1]
        work = float(sum(len(s) for s in series)) * n * n * (n + self.C.shape[-2])
        if n_threads(work, n_jobs) == 1:
            return [one(s, c) for s, c in zip(series, controls, strict=True)]
        return list(helper_pool().map(one, series, controls))
