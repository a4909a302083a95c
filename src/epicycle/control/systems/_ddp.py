"""`DDP`: locally best trajectories of nonlinear systems.

Minimise  J(u) = sum_{t<T} l(x_t, u_t) + l_T(x_T)  with  x_{t+1} = f(x_t, u_t)  and  low <= u_t <= high.

With lambda_T = l_T', lambda_t = l_x + f_x' lambda_{t+1}, the gradient is g_t = l_u + f_u' lambda_{t+1}; u is stationary
iff g is 0 where u is between its limits, and points out of them elsewhere. A backward pass minimises the quadratic
model of the cost to go, with the curvature of f (DDP) or without it (iLQR); a forward pass tries the new feedback.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epicycle.control.systems._box_qp import box_qp
from epicycle.control.systems._controlled_system import ControlledSystem
from epicycle.control.systems._cost_expansion import Expansion
from epicycle.control.systems._trajectory_solution import TrajectorySolution
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Boolean, Integer, Real, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
#: Lengths of steps that a forward pass tries, all at once.
LENGTHS = 0.5 ** np.arange(12)
#: Entries of docstrings that optimisers of trajectories share.
TRAJECTORY_DOCS: Mapping[str, str] = {
    "dynamics": "dynamics : Simulator, model with step and derivatives, or callable\n"
    "    A simulator (with exact derivatives, and its own limits of the controls), learnt dynamics, or a function\n"
    "    ``f(x, u)`` of one state and control, which is differentiated by differences.",
    "cost": "cost : QuadraticCost, SmoothCost, or an object with their methods\n    Cost of a trajectory.",
    "control_low": "control_low : float or array (m,), optional\n"
    "    Lower limits of the controls; a simulator's own hold too.",
    "control_high": "control_high : float or array (m,), optional\n    Upper limits of the controls.",
    "tol": "tol : float, default={default}\n"
    "    Relative size of the projected gradient at which a trajectory counts as stationary.",
    "max_iter": "max_iter : int, default={default}\n    Largest number of rounds.",
}
_ENOUGH = 1e-4  # share of the promised decrease that a step has to bring
_GROWTH, _LEAST, _MOST = 2.0, 1e-8, 1e12  # of the regularisation, relative to the curvature of the controls' cost
_ROUNDING = 1e-15


@dataclass
class _Path:
    """A trajectory with all derivatives along it."""

    X: Array
    U: Array
    J: float
    A: Array
    B: Array
    H: Array | None
    costs: Expansion
    stationarity: float


@in_catalogue("control", "G5", certificate="projected gradient")
class DDP:
    r"""Differential dynamic programming: a locally best trajectory of a nonlinear system.

    .. math:: \min_u \; \sum_{t<T} \ell(x_t, u_t) + \ell_T(x_T) \quad\text{with}\quad x_{t+1} = f(x_t, u_t),
              \quad u_{\min} \le u_t \le u_{\max}

    Each round goes back in time with a quadratic model of the cost to go, second derivatives of the dynamics included,
    and minimises it between the limits of the controls (a small quadratic program for each time); a forward pass with
    a line search tries the feedback that results. Where the model is not convex, the second derivatives of the dynamics
    are left out of the round; where no length of step lowers the cost, the controls' Hessian is regularised. For linear
    dynamics and quadratic costs one round is exact.

    Parameters
    ----------
    second_order : bool, default=True
        Whether to use second derivatives of the dynamics; ``iLQR`` does not.

    Examples
    --------
    A pendulum that is too weak to be lifted at once is swung up:

    >>> import numpy as np
    >>> from epicycle.control import DDP, InvertedPendulum, QuadraticCost
    >>> rod = InvertedPendulum()
    >>> cost = QuadraticCost(np.diag([0.1, 0.01]), [[0.01]], Q_final=np.diag([100.0, 10.0]))
    >>> solution = DDP(rod, cost).solve([np.pi, 0.0], horizon=80)
    >>> bool(abs(solution.states[-1]).max() < 0.05), solution.certificate.holds
    (True, True)
    """

    _docs: ClassVar[Mapping[str, str]] = TRAJECTORY_DOCS

    def __init__(
        self,
        dynamics: Any,
        cost: Any,
        *,
        control_low: Any = None,
        control_high: Any = None,
        second_order: bool = True,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        owner = type(self).__name__
        check_parameter(owner, "second_order", second_order, Boolean())
        check_parameter(owner, "tol", tol, Real(0, inclusive=False))
        check_parameter(owner, "max_iter", max_iter, Integer(minimum=0))
        if not (hasattr(cost, "total") and hasattr(cost, "expand")):
            raise DataError(f"cost: got {type(cost).__name__}; expected QuadraticCost, SmoothCost, or their methods")
        self.dynamics, self.cost, self.second_order = dynamics, cost, second_order
        self.control_low, self.control_high = control_low, control_high
        self.tol, self.max_iter = float(tol), max_iter

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dynamics!r}, {self.cost!r})"

    def solve(
        self, x: Any, controls: Any = None, *, horizon: int | None = None, n_controls: int | None = None, time: int = 0
    ) -> TrajectorySolution:
        """Improve a trajectory until it is stationary.

        Parameters
        ----------
        x : array (n,)
            First state.
        controls : array (T, m), optional
            Controls to begin with; by default zero, cut to the limits.
        horizon : int, optional
            Number of steps T, where no controls are given.
        n_controls : int, optional
            Number of controls m, where neither the dynamics nor controls tell it.
        time : int, default=0
            Time of the first state, for costs that change with time.
        """
        start, U = self._start(x, controls, horizon, n_controls)
        system = ControlledSystem(self.dynamics, len(start), U.shape[1], self.control_low, self.control_high)
        U = np.clip(U, system.low, system.high)
        X = self._roll(system, start, U)
        path = self._expand(system, X, U, float(self.cost.total(X, U, time=time)), time)
        if not np.isfinite(path.J):
            raise DataError("controls: the system runs away under them; expected controls with a finite cost")
        return self._improve(system, path, time)

    def _start(self, x: Any, controls: Any, horizon: Any, n_controls: Any) -> tuple[Array, Array]:
        start = np.asarray(x, dtype=np.float64)
        if start.ndim != 1 or not np.isfinite(start).all():
            raise DataError(f"x: got shape {start.shape}; expected one state of finite numbers")
        if controls is None:
            m = n_controls if n_controls is not None else _n_controls(self.dynamics, self.cost)
            return start, np.zeros((count("horizon", horizon, low=1), count("n_controls", m, low=1)))
        U = np.array(controls, dtype=np.float64)
        if U.ndim != 2 or len(U) == 0 or not np.isfinite(U).all() or horizon not in (None, len(U)):
            raise DataError(f"controls: got shape {U.shape}; expected finite numbers (horizon, m)")
        return start, U

    def _roll(self, system: ControlledSystem, start: Array, U: Array) -> Array:
        X = np.empty((len(U) + 1, len(start)))
        X[0] = start
        for t, u in enumerate(U):
            X[t + 1] = system.step(X[t : t + 1], u[None])[0]
        return X

    def _expand(self, system: ControlledSystem, X: Array, U: Array, J: float, time: int) -> _Path:
        if not np.isfinite(J):
            return _Path(X, U, np.inf, X, X, None, None, np.inf)  # type: ignore[arg-type]
        A, B, H = system.expand(X[:-1], U, self.second_order)
        costs = self.cost.expand(X, U, time=time)
        return _Path(X, U, J, A, B, H, costs, _stationarity(A, B, costs, U, system.low, system.high))

    def _improve(self, system: ControlledSystem, path: _Path, time: int) -> TrajectorySolution:
        unit = max(float(np.abs(path.costs.luu).max()), np.finfo(float).tiny)
        weight, factor = 0.0, 1.0
        rows = [(path.J, path.stationarity, 0.0, 0.0)]
        for _ in range(self.max_iter):
            if path.stationarity <= self.tol:
                break
            feedback = _feedback(path, system, weight * unit)
            if feedback is None and self.second_order:  # not convex: without the curvature of the dynamics it is
                feedback = _feedback(path, system, weight * unit, bent=False)
            accepted = None if feedback is None else self._forward(system, path, feedback, time)
            if accepted is None:
                factor = max(_GROWTH, factor * _GROWTH)
                weight = max(_LEAST, weight * factor)
                if weight > _MOST:
                    break
                continue
            X, U, J, length = accepted
            done = _ROUNDING * abs(path.J) >= path.J - J
            path = self._expand(system, X, U, J, time)
            rows.append((J, path.stationarity, length, weight))
            factor = min(1 / _GROWTH, factor / _GROWTH)
            weight = weight * factor if weight * factor > _LEAST else 0.0
            if done:
                break
        return self._conclude(system, path, rows, unit)

    def _forward(
        self, system: ControlledSystem, path: _Path, feedback: tuple[Array, Array, float, float], time: int
    ) -> tuple[Array, Array, float, float] | None:
        """The longest step that lowers the cost enough; all lengths are tried side by side."""
        k, K, first, second = feedback
        T, m = path.U.shape
        X = np.empty((len(LENGTHS), T + 1, path.X.shape[1]))
        U = np.empty((len(LENGTHS), T, m))
        X[:, 0] = path.X[0]
        for t in range(T):
            off = X[:, t] - path.X[t]
            U[:, t] = np.clip(path.U[t] + LENGTHS[:, None] * k[t] + off @ K[t].T, system.low, system.high)
            X[:, t + 1] = system.step(X[:, t], U[:, t])
        fine = np.flatnonzero(np.isfinite(X).all(axis=(1, 2)) & np.isfinite(U).all(axis=(1, 2)))
        costs = np.full(len(LENGTHS), np.inf)
        costs[fine] = self.cost.total(X[fine], U[fine], time=time)
        promised = -(LENGTHS * first + LENGTHS**2 * second)
        good = (path.J - costs >= _ENOUGH * promised) & (costs <= path.J)
        if not good.any():
            return None
        i = int(np.argmax(good))
        return X[i], U[i], float(costs[i]), float(LENGTHS[i])

    def _conclude(self, system: ControlledSystem, path: _Path, rows: list[Any], unit: float) -> TrajectorySolution:
        feedback = None
        weight = 0.0
        while feedback is None and weight <= _MOST:  # the feedback at the end, regularised only if it has to be
            feedback = _feedback(path, system, weight * unit)
            weight = max(_LEAST, 10 * weight)
        gain = np.zeros((*path.U.shape, path.X.shape[1])) if feedback is None else feedback[1]
        J, gradient, length, weights = (np.array(column) for column in zip(*rows, strict=True))
        meaning = f"the gradient of the cost by the controls is {path.stationarity:.1e} of the terms that cancel in it"
        certificate = Certificate("projected gradient", path.stationarity, self.tol, meaning)
        if not certificate.holds:
            warnings.warn(
                f"{type(self).__name__}: {certificate} after {len(rows) - 1} steps; raise max_iter, begin with other "
                "controls, or look for kinks in the dynamics",
                ConvergenceWarning,
                stacklevel=4,
            )
        history = History(cost=J, gradient=gradient, step=length, regularization=weights)
        limits = system.low, system.high
        return TrajectorySolution(path.X, path.U, gain, *limits, path.J, len(rows) - 1, history, certificate)


def _n_controls(dynamics: Any, cost: Any) -> Any:
    for thing, name in ((dynamics, "n_controls"), (dynamics, "n_controls_")):
        if hasattr(thing, name):
            return getattr(thing, name)
    return len(cost.R) if hasattr(cost, "R") else None


def _stationarity(A: Array, B: Array, costs: Expansion, U: Array, low: Array, high: Array) -> float:
    """Largest entry of the projected gradient, relative to the terms that it is the sum of."""
    slope = costs.final_x
    largest, scale = 0.0, float(np.finfo(float).tiny)
    for t in reversed(range(len(U))):
        g, terms = costs.lu[t] + B[t].T @ slope, np.abs(costs.lu[t]) + np.abs(B[t]).T @ np.abs(slope)
        # At a limit a gradient that points out of it does no harm.
        inward = np.where(U[t] <= low, np.minimum(g, 0.0), np.where(U[t] >= high, np.maximum(g, 0.0), g))
        largest, scale = max(largest, float(np.abs(inward).max())), max(scale, float(terms.max()))
        slope = costs.lx[t] + A[t].T @ slope
    return largest / scale


def _feedback(
    path: _Path, system: ControlledSystem, weight: float, *, bent: bool = True
) -> tuple[Array, Array, float, float] | None:
    """Backward pass: steps k, gains K, and the slope and curvature of the promised change; None if not convex."""
    T, m = path.U.shape
    n = path.X.shape[1]
    c = path.costs
    k, K = np.zeros((T, m)), np.zeros((T, m, n))
    Vx, Vxx = c.final_x, c.final_xx
    first, second = 0.0, 0.0
    for t in reversed(range(T)):
        A, B = path.A[t], path.B[t]
        VA, VB = Vxx @ A, Vxx @ B
        Qx, Qu = c.lx[t] + A.T @ Vx, c.lu[t] + B.T @ Vx
        Qxx, Quu, Qux = c.lxx[t] + A.T @ VA, c.luu[t] + B.T @ VB, c.lux[t] + B.T @ VA
        if path.H is not None and bent:
            bend = np.tensordot(Vx, path.H[t], axes=1)
            Qxx, Quu, Qux = Qxx + bend[:n, :n], Quu + bend[n:, n:], Qux + bend[n:, :n]
        shifted = Quu + weight * np.eye(m)
        low, high = system.low - path.U[t], system.high - path.U[t]
        free = np.ones(m, dtype=bool)
        if not _positive(shifted):  # a control that stays at its limit needs no curvature
            free = ~(((low >= 0) & (Qu > 0)) | ((high <= 0) & (Qu < 0)))
            if not _positive(shifted[np.ix_(free, free)]):
                return None
        if free.any():
            inner = shifted[np.ix_(free, free)]
            k[t][free], moving = box_qp(inner, Qu[free], low[free], high[free])
            free[free] = moving
            K[t][free] = -np.linalg.solve(shifted[np.ix_(free, free)], Qux[free])
        first += float(k[t] @ Qu)
        second += 0.5 * float(k[t] @ Quu @ k[t])
        QK = Quu @ K[t]
        Vx = Qx + QK.T @ k[t] + K[t].T @ Qu + Qux.T @ k[t]
        Vxx = Qxx + K[t].T @ QK + K[t].T @ Qux + Qux.T @ K[t]
        Vxx = (Vxx + Vxx.T) / 2
    return k, K, first, second


def _positive(M: Array) -> bool:
    if len(M) <= 1:
        return bool((M > 0).all())
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return False
    return True
