"""`LQG`: a linear system that is seen through noise, controlled by what the filter knows of it.

With e = x - x^ the error of the filter and u = -K x^, completing the square of Riccati's equation gives
    E cost = E x(0)'P x(0) + sum_t g^t [ g trace(P W) + trace(K'(R + g B'PB) K S(t)) ],   S(t) = cov(e(t)),
and S does not depend on the controls: K is that of the seen state, the filter that of the system left alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.control.filters._kalman_filter import KalmanFilter
from epicycle.control.systems import _riccati as riccati
from epicycle.control.systems._lqr import LQR, LQRSolution
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Integer, NoneOr, Real, check_parameter
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_STEPS = 100_000  # most steps until the covariance of the filter has settled


@dataclass(frozen=True)
class LQGSolution:
    r"""Regulator and filter, and what their loop costs.

    Attributes
    ----------
    gain : array (m, n), or (T, m, n) with a finite horizon
        :math:`K` of :math:`u = -K \hat x`; that of the regulator that sees the state.
    filter_gain : array (n, p), or (T, n, p)
        :math:`L` of :math:`\hat x_t = \hat x_{t|t-1} + L (y_t - C \hat x_{t|t-1})`.
    cost : float
        Expected cost of the loop: of a step in the long run with an infinite horizon and discount 1, otherwise the sum.
    full_information_cost : float
        The same if the state were seen; the difference is the price of the noise of the observations.
    error_covariance : array (n, n), or (T, n, n)
        Covariance of :math:`x_t - \hat x_t`.
    eigenvalues : array (2 n,)
        Of the loop: those of :math:`A - BK` and those of the filter, :math:`A - A L C`. Empty with a finite horizon.
    regulator : LQRSolution
        The regulator by itself.
    history : History
        Residuals of the two equations of Riccati.
    certificate : Certificate
        The larger of the two; it does not hold where the loop is unstable.
    """

    gain: Array
    filter_gain: Array = field(repr=False)
    cost: float
    full_information_cost: float
    error_covariance: Array = field(repr=False)
    eigenvalues: Array = field(repr=False)
    regulator: LQRSolution = field(repr=False)
    history: History = field(repr=False)
    certificate: Certificate

    def control(self, estimate: Any, time: int = 0) -> Array:
        """Best control for an estimate of the state.

        Parameters
        ----------
        estimate : array (n,) or (rows, n)
            Mean of the state given all observations so far.
        time : int, default=0
            Time, with a finite horizon.

        Returns
        -------
        array (m,) or (rows, m)
        """
        return self.regulator.control(estimate, time)


@in_catalogue("control", "G6", certificate="Riccati residual")
class LQG:
    r"""Linear quadratic Gaussian control: the state is seen through noise only.

    .. math::

        \min_u \; \mathrm{E} \sum_t \gamma^t \big( x_t' Q x_t + 2 x_t' N u_t + u_t' R u_t \big) \quad\text{with}\quad
        x_{t+1} = A x_t + B u_t + w_t, \; y_t = C x_t + v_t, \quad w_t \sim N(0, W), \; v_t \sim N(0, V) ,

    where :math:`u_t` may depend on :math:`y_0, \ldots, y_t`. By the separation principle :math:`u_t = -K \hat x_t` is
    best, with the gain of :class:`LQR` for the state itself, and the mean of :class:`KalmanFilter`, which neither
    knows of costs nor of K.

    Parameters
    ----------
    A, B, C : arrays (n, n), (n, m), (p, n)
        Dynamics, effect of the controls, what is observed.
    Q, R : arrays (n, n) and (m, m)
        Costs of states and controls, symmetric, R positive definite.
    W, V : arrays (n, n) and (p, p)
        Covariances of the noise of the dynamics and of the observations, V positive definite.
    N : array (n, m), optional
        Cost of states with controls.
    Q_final : array (n, n), optional
        Cost of the last state of a finite horizon; by default Q.
    discount : float, default=1
        :math:`\gamma`.
    mean : array (n,), optional
        Mean of the first state; by default zero.
    covariance : array (n, n), optional
        Covariance of the first state; by default that of the settled filter before it has seen the next observation.

    Examples
    --------
    A mass whose position is measured:

    >>> from epicycle.control import LQG
    >>> mass = {"A": [[1, 0.1], [0, 1]], "B": [[0], [0.1]], "C": [[1, 0]], "Q": [[1, 0], [0, 1]], "R": [[0.1]]}
    >>> solution = LQG(**mass, W=[[0, 0], [0, 0.01]], V=[[0.1]]).solve()
    >>> solution.gain.round(3)
    array([[2.585, 3.575]])
    >>> noisier = LQG(**mass, W=[[0, 0], [0, 0.04]], V=[[2.0]]).solve()
    >>> bool((noisier.gain == solution.gain).all()), bool(noisier.cost > solution.cost)
    (True, True)
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        C: Any,
        Q: Any,
        R: Any,
        W: Any,
        V: Any,
        *,
        N: Any = None,
        Q_final: Any = None,
        discount: float = 1.0,
        mean: Any = None,
        covariance: Any = None,
    ) -> None:
        self.regulator = LQR(A, B, Q, R, N=N, Q_final=Q_final, noise=W, discount=discount)
        if self.regulator.n_steps or np.ndim(C) == 3:
            raise DataError("LQG: got matrices that change with time; expected one of each")
        n = self.regulator.A.shape[0]
        start = np.eye(n) if covariance is None else covariance
        self.filter = KalmanFilter(A, C, W, V, B=B, mean=mean, covariance=start)
        with riccati.solvable("A, B, C, Q, R, W, V"):
            self._settled = self._stationary() if covariance is None else None
        if self._settled is not None:
            self.filter = self.filter.with_parameters(covariance=self._settled[0])

    def __repr__(self) -> str:
        n, m, p = self.filter.A.shape[0], self.filter.B.shape[1], self.filter.C.shape[0]
        return f"LQG({n} states, {m} controls, {p} observed)"

    def solve(self, horizon: int | None = None, *, tol: float = 1e-10) -> LQGSolution:
        """Best controller.

        Parameters
        ----------
        horizon : int, optional
            Number of steps T; None means an infinite horizon.
        tol : float, default=1e-10
            Residual of Riccati's equations, relative, at which the certificate holds.
        """
        check_parameter("LQG.solve", "horizon", horizon, NoneOr(Integer(minimum=1)))
        check_parameter("LQG.solve", "tol", tol, Real(0, inclusive=False))
        with riccati.solvable("A, B, C, Q, R, W, V"):
            return self._infinite(tol) if horizon is None else self._finite(horizon)

    def simulate(
        self, solution: LQGSolution, *, n_steps: int = 1000, n_episodes: int = 100, random_state: Seed = None
    ) -> Array:
        """Costs of the loop, drawn from the model.

        Parameters
        ----------
        solution : LQGSolution
            The controller.
        n_steps : int, default=1000
            Steps of an episode; with a finite horizon it is that.
        n_episodes : int, default=100
            Number of episodes.
        random_state : int, Generator, RandomState or None
            Seed.

        Returns
        -------
        array (n_episodes,)
            Mean cost of a step with an infinite horizon and discount 1, otherwise the discounted sum.
        """
        finite = solution.gain.ndim == 3
        steps = len(solution.gain) if finite else count("n_steps", n_steps, low=1)
        rng, model, cost = stream(random_state, "lqg"), self.filter, self.regulator
        n, p, rows = len(model.mean), model.C.shape[0], count("n_episodes", n_episodes, low=1)
        roots = [riccati.covariance_root(M) for M in (model.covariance, model.W, model.V)]
        x = model.mean + rng.standard_normal((rows, n)) @ roots[0].T
        predicted, total, weight = np.tile(model.mean, (rows, 1)), np.zeros(rows), 1.0
        for t in range(steps):
            y = x @ model.C.T + rng.standard_normal((rows, p)) @ roots[2].T
            L = solution.filter_gain[t] if finite else solution.filter_gain
            estimate = predicted + (y - predicted @ model.C.T) @ L.T
            u = solution.control(estimate, t)
            total += weight * _quadratic(x, cost.Q, x)
            total += weight * (2 * _quadratic(x, cost.N, u) + _quadratic(u, cost.R, u))
            weight *= cost.discount
            x = x @ model.A.T + u @ model.B.T + rng.standard_normal((rows, n)) @ roots[1].T
            predicted = estimate @ model.A.T + u @ model.B.T
        if finite:
            last = cost.Q if cost.Q_final is None else cost.Q_final
            return total + weight * _quadratic(x, last, x)
        return total / steps if cost.discount == 1 else total

    # ------------------------------------------------------------------------------------------------ inside

    def _stationary(self) -> tuple[Array, list[float]]:
        """Covariance of the settled filter before an observation, by the equation of the dual regulator."""
        A, C, W, V = self.filter.A, self.filter.C, self.filter.W, self.filter.V
        modes = [s for s in np.linalg.eigvals(A) if abs(s) >= 1 - 1e-10]
        for name, verb, hidden in (
            ("C", "no observation sees", riccati.hidden_modes(A.T, C.T, modes)),
            ("W", "no noise reaches", riccati.hidden_modes(A, W, modes)),
        ):
            if hidden:
                raise DataError(
                    f"{name}: {verb} the mode of A with eigenvalue {hidden[0]:.6g}, on or outside the unit circle, so "
                    "that the filter does not settle; expected a finite horizon and a covariance of the first state"
                )
        return riccati.discrete(A.T, C.T, W, V, np.zeros((len(A), len(C))))

    def _infinite(self, tol: float) -> LQGSolution:
        regulator = self.regulator.solve(tol=tol)
        predicted, residuals = self._stationary() if self._settled is None else self._settled
        model, step = self.filter, self.regulator._step()
        L, error = self._updated(predicted)
        P, K, g = regulator.cost_matrix, regulator.gain, self.regulator.discount
        noise = float(np.trace(P @ model.W))
        H = K.T @ (step.R + g * step.B.T @ P @ step.B) @ K
        extra = float(np.trace(H @ error))
        if g == 1:
            seen, cost = noise, noise + extra
        else:
            first = float(model.mean @ P @ model.mean + np.trace(P @ model.covariance))
            seen = first + g * noise / (1 - g)
            cost = seen + self._discounted(H, error, g)
        loop = model.A - model.B @ K
        eigenvalues = np.concatenate([np.linalg.eigvals(loop), np.linalg.eigvals(model.A - model.A @ L @ model.C)])
        stable = max(regulator.spectral_radius, np.abs(eigenvalues[len(loop) :]).max()) < 1
        value = max(regulator.certificate.value, residuals[-1]) if stable else np.inf
        meaning = f"both of Riccati's equations hold to {value:.1e}, and the loop is stable"
        certificate = Certificate("Riccati residual", value, tol, meaning)
        if not certificate.holds:
            warnings.warn(f"{certificate}; the loop has eigenvalues {eigenvalues}", ConvergenceWarning, stacklevel=3)
        rounds = max(len(residuals), regulator.history.n_iter)
        padded = [np.pad(r, (0, rounds - len(r)), mode="edge") for r in (regulator.history["residual"], residuals)]
        history = History(regulator=padded[0], filter=padded[1])
        return LQGSolution(K, L, cost, seen, error, eigenvalues, regulator, history, certificate)

    def _discounted(self, H: Array, settled: Array, g: float) -> float:
        """sum_t g^t trace(H S(t)) from the covariance of the first state."""
        predicted, total, weight = self.filter.covariance, 0.0, 1.0
        for _ in range(_STEPS):
            _, error = self._updated(predicted)
            if weight < 1e-17 or np.abs(error - settled).max() <= 1e-15 * np.abs(settled).max():
                break
            total += weight * float(np.trace(H @ error))
            predicted = self.filter.A @ error @ self.filter.A.T + self.filter.W
            weight *= g
        return total + weight * float(np.trace(H @ settled)) / (1 - g)

    def _finite(self, horizon: int) -> LQGSolution:
        regulator, model = self.regulator.solve(horizon), self.filter
        step, g = self.regulator._step(), self.regulator.discount
        predicted, gains, errors, extra = model.covariance, [], [], 0.0
        for t in range(horizon):
            L, error = self._updated(predicted)
            K, P = regulator.gain[t], regulator.cost_matrix[t + 1]
            H = K.T @ (step.R + g * step.B.T @ P @ step.B) @ K
            extra += g**t * float(np.trace(H @ error))
            gains.append(L)
            errors.append(error)
            predicted = model.A @ error @ model.A.T + model.W
        first = float(regulator.cost_to_go(model.mean)) + float(np.trace(regulator.cost_matrix[0] @ model.covariance))
        return LQGSolution(
            gain=regulator.gain,
            filter_gain=np.stack(gains),
            cost=first + extra,
            full_information_cost=first,
            error_covariance=np.stack(errors),
            eigenvalues=np.empty(0),
            regulator=regulator,
            history=History(error=[float(np.trace(S)) for S in errors]),
            certificate=regulator.certificate,
        )

    def _updated(self, predicted: Array) -> tuple[Array, Array]:
        """Gain of the filter and covariance of its error after an observation, in Joseph's form."""
        C, V = self.filter.C, self.filter.V
        CP = C @ predicted
        L = scipy.linalg.solve(CP @ C.T + V, CP, assume_a="pos").T
        kept = np.eye(len(predicted)) - L @ C
        error = kept @ predicted @ kept.T + L @ V @ L.T
        return L, (error + error.T) / 2


def _quadratic(x: Array, M: Array, y: Array) -> Array:
    return np.asarray(np.einsum("ri,ij,rj->r", x, M, y))
