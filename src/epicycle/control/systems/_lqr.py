"""`LQR`: linear dynamics, quadratic costs, and the feedback that minimises them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from epicycle.control.systems import _riccati as riccati
from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Domain, Integer, NoneOr, Real, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@documented({})
@dataclass(frozen=True)
class LQRSolution:
    r"""Feedback :math:`u = -K x - k` and the cost that is still to come, :math:`x' P x + 2 p' x + c`.

    Attributes
    ----------
    gain : array (m, n), or (T, m, n) with a finite horizon
        :math:`K`; in continuous time at each of `times`.
    offset : array (m,), or (T, m)
        :math:`k`, zero without affine terms.
    cost_matrix, cost_vector, cost_constant : arrays
        :math:`P`, :math:`p` and :math:`c`, with a finite horizon for the times 0 to T. The noise of the dynamics
        changes the constant alone.
    spectral_radius : float
        Largest absolute eigenvalue of :math:`A - BK` (discrete time), or largest real part (continuous time); below 1,
        or below 0, the controlled system is stable. NaN with a finite horizon.
    history : History
        Residual of Riccati's equation in each round.
    certificate : Certificate
        Residual of Riccati's equation relative to P; it does not hold where the controlled system is unstable.
    times : array or None
        Times of a finite horizon in continuous time; between them feedback and costs are linear.
    """

    _docs: ClassVar = {
        "x": "x : array (n,) or (rows, n)\n    State, or several.",
        "time": "time : int or float, default={default}\n    Time, with a finite horizon.",
    }

    gain: Array
    offset: Array = field(repr=False)
    cost_matrix: Array = field(repr=False)
    cost_vector: Array = field(repr=False)
    cost_constant: Array = field(repr=False)
    spectral_radius: float
    history: History = field(repr=False)
    certificate: Certificate
    times: Array | None = field(default=None, repr=False)

    def control(self, x: Any, time: float = 0) -> Array:
        """Best control in a state.

        Returns
        -------
        array (m,) or (rows, m)
        """
        K, k = (self.gain, self.offset) if self.gain.ndim == 2 else self._at(time, self.gain, self.offset)
        return np.asarray(-np.asarray(x) @ K.T - k)

    def cost_to_go(self, x: Any, time: float = 0) -> Array:
        """Expected cost from a state on.

        Returns
        -------
        float or array (rows,)
        """
        P, p, c = self.cost_matrix, self.cost_vector, self.cost_constant
        if P.ndim == 3:
            P, p, c = self._at(time, P, p, c)
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(np.einsum("...i,ij,...j->...", x, P, x) + 2 * x @ p + c)

    def _at(self, time: float, *paths: Array) -> tuple[Array, ...]:
        """Values of paths at a time; in continuous time between two of their points."""
        if self.times is None:
            return tuple(path[int(time)] for path in paths)
        if not 0 <= time <= self.times[-1]:
            raise DataError(f"time={time:g}; expected one from 0 to the horizon, {self.times[-1]:g}")
        i = min(int(np.searchsorted(self.times, time, side="right")) - 1, len(self.times) - 2)
        share = (time - self.times[i]) / (self.times[i + 1] - self.times[i])
        return tuple((1 - share) * path[i] + share * path[i + 1] for path in paths)


@in_catalogue("control", "G5", certificate="Riccati residual")
class LQR:
    r"""Linear quadratic regulator.

    .. math::

        \min_u \; \mathrm{E} \sum_t \gamma^t \big( x_t' Q x_t + 2 x_t' N u_t + u_t' R u_t + 2 q' x_t + 2 r' u_t \big)
        \quad\text{with}\quad x_{t+1} = A x_t + B u_t + d + w_t, \quad w_t \sim N(0, W)

    The best control is linear in the state, :math:`u = -K x - k`, and does not depend on the noise. With a finite
    horizon :math:`P_t` comes from Riccati's recursion, from the end; with an infinite one it is the fixed point,
    computed by doubling and refined by Newton's steps. In continuous time :math:`\dot x = A x + B u`,
    and sums are integrals.

    Parameters
    ----------
    A : array (n, n), or a sequence of T of them
        Dynamics; a sequence for dynamics that change with time.
    B : array (n, m), or a sequence of T of them
        Effect of the controls.
    Q : array (n, n) or a sequence
        Cost of states, symmetric.
    R : array (m, m) or a sequence
        Cost of controls, symmetric and positive definite.
    N : array (n, m), optional
        Cost of states with controls.
    Q_final : array (n, n), optional
        Cost of the last state of a finite horizon; by default Q.
    q, r, d : arrays (n,), (m,), (n,), optional
        Linear costs and the constant drift of the dynamics; with a finite horizon or a discount below 1.
    noise : array (n, n), optional
        Covariance W.
    discount : float, default=1
        :math:`\gamma`.
    time : {"discrete", "continuous"}, default="discrete"
        Kind of time.

    Examples
    --------
    A mass on a line is brought to rest:

    >>> from epicycle.control import LQR
    >>> solution = LQR(A=[[1, 0.1], [0, 1]], B=[[0], [0.1]], Q=[[1, 0], [0, 1]], R=[[0.1]]).solve()
    >>> solution.gain.round(3)
    array([[2.585, 3.575]])
    >>> bool(solution.spectral_radius < 1), solution.certificate.holds
    (True, True)
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        Q: Any,
        R: Any,
        *,
        N: Any = None,
        Q_final: Any = None,
        q: Any = None,
        r: Any = None,
        d: Any = None,
        noise: Any = None,
        discount: float = 1.0,
        time: str = "discrete",
    ) -> None:
        check_parameter("LQR", "discount", discount, Real(0, 1))
        check_parameter("LQR", "time", time, Choice("discrete", "continuous"))
        self.time, self.discount = time, float(discount)
        self.A = riccati.matrix("A", A)
        n = self.A.shape[-1]
        self.B = riccati.matrix("B", B, n)
        m = self.B.shape[-1]
        self.Q, self.R = riccati.cost("Q", Q, n), riccati.cost("R", R, m)
        self.N = riccati.matrix("N", np.zeros((n, m)) if N is None else N, n, m)
        self.Q_final = None if Q_final is None else riccati.semidefinite("Q_final", riccati.cost("Q_final", Q_final, n))
        self.q, self.r, self.d = (
            riccati.vector(name, given, size) for name, given, size in (("q", q, n), ("r", r, m), ("d", d, n))
        )
        self.noise = (
            np.zeros((n, n)) if noise is None else riccati.semidefinite("noise", riccati.cost("noise", noise, n))
        )
        riccati.check_costs(self.Q, self.N, self.R)
        given = (self.A, self.B, self.Q, self.R, self.N)
        self.n_steps = {len(M) for M in given if M.ndim == 3}
        if len(self.n_steps) > 1:
            raise DataError(f"LQR: got sequences of {sorted(self.n_steps)} matrices; expected the same number of each")

    def __repr__(self) -> str:
        return f"LQR({self.A.shape[-1]} states, {self.B.shape[-1]} controls, {self.time} time)"

    def solve(self, horizon: float | None = None, *, n_steps: int = 200, tol: float = 1e-10) -> LQRSolution:
        """Best feedback.

        Parameters
        ----------
        horizon : int or float, optional
            Number of steps T, or in continuous time the length; None means an infinite horizon, or the length of the
            given sequences.
        n_steps : int, default=200
            Intervals of a finite horizon in continuous time, at whose ends the feedback is given.
        tol : float, default=1e-10
            Residual of Riccati's equation, relative to P, at which the certificate holds.
        """
        lengths: Domain = Real(0, inclusive=False) if self.time == "continuous" else Integer(minimum=1)
        check_parameter("LQR.solve", "horizon", horizon, NoneOr(lengths))
        check_parameter("LQR.solve", "n_steps", n_steps, Integer(minimum=1))
        check_parameter("LQR.solve", "tol", tol, Real(0, inclusive=False))
        if self.n_steps:
            (steps,) = self.n_steps
            if self.time == "continuous":
                raise DataError("A, B, Q, R, N: sequences of matrices need discrete time")
            if horizon not in (None, steps):
                raise DataError(f"horizon={horizon} with sequences of {steps} matrices; expected the same number")
            horizon = steps
        with riccati.solvable("A, B, Q, R"):
            if horizon is None:
                solution = self._infinite(tol)
            elif self.time == "continuous":
                solution = self._continuous(float(horizon), n_steps)
            else:
                solution = self._finite(int(horizon))
            if not (np.isfinite(solution.gain).all() and np.isfinite(solution.cost_matrix).all()):
                raise OverflowError("the costs grow beyond floating point")
        return solution

    def _finite(self, horizon: int) -> LQRSolution:
        last = self.Q[-1] if self.Q.ndim == 3 else self.Q
        P, p, c = (last if self.Q_final is None else self.Q_final), np.zeros_like(self.q), 0.0
        costs, feedback = [(P, p, c)], []
        for t in reversed(range(horizon)):
            step = self._step(t)
            K, k, P, p, c = step.backward(P, p, c)
            feedback.append((K, k))
            costs.append((P, p, c))
        gains, offsets = (np.stack(x) for x in zip(*feedback[::-1], strict=True))
        matrices, vectors, constants = (np.stack(x) for x in zip(*costs[::-1], strict=True))
        rounding = np.finfo(float).eps * horizon * self.A.shape[-1]
        meaning = "dynamic programming is exact up to rounding: no other feedback costs less"
        certificate = Certificate("rounding", rounding, 1e-6, meaning)
        history = History(cost=[float(np.trace(M)) for M in matrices])
        return LQRSolution(gains, offsets, matrices, vectors, constants, np.nan, history, certificate)

    def _continuous(self, horizon: float, n_steps: int) -> LQRSolution:
        """A finite horizon in continuous time; linear terms by a further state that is always 1."""
        if self.discount != 1:
            raise DataError(f"discount={self.discount}: expected 1 with time='continuous'")
        n, m = self.B.shape
        A = np.block([[self.A, self.d[:, None]], [np.zeros((1, n + 1))]])
        Q = np.block([[self.Q, self.q[:, None]], [self.q[None, :], np.zeros((1, 1))]])
        B, N = np.vstack([self.B, np.zeros((1, m))]), np.vstack([self.N, self.r[None, :]])
        last = np.zeros((n + 1, n + 1))
        last[:n, :n] = self.Q if self.Q_final is None else self.Q_final
        path, parts = riccati.continuous_path(A, B, Q, self.R, N, last, horizon, n_steps)
        # The noise costs the integral of trace(P W): Simpson's rule over pairs of parts, from the end.
        price = np.einsum("tij,ji->t", path[:, :n, :n], self.noise)
        width = horizon / (n_steps * parts)
        pairs = (price[:-2:2] + 4 * price[1:-1:2] + price[2::2]) * width / 3
        spent = np.append(np.cumsum(pairs[::-1])[::-1], 0.0)[:: parts // 2]
        path = path[::parts]
        feedback = np.linalg.solve(self.R, B.T @ path + N.T)
        rounding = np.finfo(float).eps * n_steps * parts * n
        meaning = "Riccati's equation is solved by exponentials, exact up to rounding: no other feedback costs less"
        return LQRSolution(
            feedback[:, :, :n],
            feedback[:, :, n],
            path[:, :n, :n],
            path[:, :n, n],
            path[:, n, n] + spent,
            np.nan,
            History(cost=[float(np.trace(P)) for P in path[:, :n, :n]]),
            Certificate("rounding", rounding, 1e-6, meaning),
            np.linspace(0, horizon, n_steps + 1),
        )

    def _step(self, t: int = 0) -> riccati.Step:
        A, B, Q, R, N = (M[t] if M.ndim == 3 else M for M in (self.A, self.B, self.Q, self.R, self.N))
        return riccati.Step(A, B, Q, R, N, self.q, self.r, self.d, self.noise, self.discount)

    def _infinite(self, tol: float) -> LQRSolution:
        affine = self.q.any() or self.r.any() or self.d.any()
        if affine and (self.discount == 1 or self.time == "continuous"):
            raise DataError("q, r, d: with an infinite horizon they need discrete time and discount < 1")
        if self.time == "continuous":
            if self.discount != 1:
                raise DataError(f"discount={self.discount}: expected 1 with time='continuous'")
            P, residuals = riccati.continuous(self.A, self.B, self.Q, self.R, self.N)
            K = np.linalg.solve(self.R, self.B.T @ P + self.N.T)
            radius, stable = float(np.linalg.eigvals(self.A - self.B @ K).real.max()), 0.0
            constant = float(np.trace(P @ self.noise))
        else:
            root = np.sqrt(self.discount)
            P, residuals = riccati.discrete(root * self.A, root * self.B, self.Q, self.R, self.N)
            step = self._step()
            K = step.gain(P)
            radius, stable = float(np.abs(np.linalg.eigvals(root * (self.A - self.B @ K))).max()), 1.0
            constant = 0.0
        k, p = np.zeros(self.B.shape[1]), np.zeros(self.A.shape[0])
        if affine:
            k, p = step.fixed_affine(P)
        if self.time == "discrete" and self.discount < 1:
            constant = step.fixed_constant(P, p, k)
        elif self.time == "discrete" and self.noise.any():
            constant = np.inf  # the cost of noise is paid for ever
        value = residuals[-1] if radius < stable else np.inf
        meaning = f"Riccati's equation holds to {value:.1e} of P, and the controlled system is stable"
        certificate = Certificate("Riccati residual", value, tol, meaning)
        if not certificate.holds:
            warnings.warn(f"{certificate}; spectral radius {radius:g}", ConvergenceWarning, stacklevel=3)
        return LQRSolution(K, k, P, p, np.array(constant), radius, History(residual=residuals), certificate)
