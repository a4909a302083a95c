"""The search for hyper-parameters: its starts, its rehearsal on a subset of the rows, and its certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.optimize

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import (
    AnyOf,
    Boolean,
    Callable as CallableDomain,
    Choice,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
)
from epicycle.core._random import stream
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import NAMES
from epicycle.kernels._scikit_learn import SCIKIT_LEARN_NAMES, ScikitLearnKernel
from epicycle.linalg._cholesky import NotPositiveError
from epicycle.optim._box_bfgs import BoxMaximum, maximise_in_box, relative_slope

SUBSET_ROWS = 384  # of a rehearsal: enough to find the region of the optimum, at (384 / n)^3 of the cost
_REHEARSAL_FACTOR = 100  # by which the tolerance of a rehearsal is larger: its optimum is another one anyway

#: Domains of the parameters that regression and classification share.
GP_PARAMETERS: Mapping[str, Domain] = {
    "kernel": NoneOr(AnyOf(Choice(*NAMES, *SCIKIT_LEARN_NAMES), InstanceOf(Kernel), CallableDomain())),
    "optimizer": NoneOr(AnyOf(Choice("bfgs", "fmin_l_bfgs_b"), CallableDomain())),
    "n_restarts_optimizer": Integer(minimum=0),
    "n_inducing": NoneOr(Integer(minimum=1)),
    "inducing": Choice("greedy", "kmeans++"),
    "copy_X_train": Boolean(),
}

#: Their entries in docstrings, and those of the attributes that both have.
GP_DOCS = {
    "kernel": """kernel : Kernel, str, callable or None, default={default}
    A kernel of :mod:`epicycle.kernel` or of :mod:`sklearn.gaussian_process.kernels`, whose bounds are those of the
    search; one of scikit-learn's names or classes ("rbf", "RBF", "ExpSineSquared"); a function f(X, Z) that gives the
    matrix. None is a Gaussian kernel times a variance, in the units of the data.""",
    "n_restarts_optimizer": """n_restarts_optimizer : int, default={default}
    Number of further starts, drawn within the bounds.""",
    "inducing": """inducing : {"greedy", "kmeans++"}, default={default}
    How these rows are chosen: each where the variance given those before is largest, or drawn in proportion to the
    squared distance from them.""",
    "tol": """tol : float, default={default}
    Tolerance of the projected gradient, relative to half the number of observations.""",
    "max_iter": """max_iter : int, default={default}
    Maximum number of iterations of the search, over all starts.""",
    "random_state": """random_state : int, Generator, RandomState or None, default={default}
    Seed of the starts, of the choice of rows and of random estimates.""",
    "copy_X_train": """copy_X_train : bool, default={default}
    Whether the rows that are kept are a copy; False keeps the given array where no row was merged or left out.""",
    "search_attributes": """theta_names_ : list of str
    Names of the entries of theta_.
method_ : str
    The method that "auto" has chosen.
n_evaluations_ : int
    Number of evaluations of the likelihood on all rows.
history_ : History
    Negative log marginal likelihood and its projected gradient after every iteration.
n_iter_ : int
converged_ : bool""",
    "X_fit_": """X_fit_ : array or sparse matrix of shape (n_rows, n_features), or None
    The distinct rows of the fit (of "inducing" those chosen); None for a precomputed kernel.
    `X_train_` is another name.""",
    "X": """X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
    For a precomputed kernel the matrix of shape (n_samples, n_samples).""",
    "X_new": "X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings",
    "log_marginal_likelihood": """Parameters
----------
theta : array-like, optional
    Logarithms of hyper-parameters as in `theta_`; None for the value at the end of the fit.
eval_gradient : bool, default=False
    Whether to return the derivatives by theta too, which has to be given then.
clone_kernel : bool, default=True
    False leaves the kernel at theta in `kernel_` (prediction stays that of the fit).

Returns
-------
float, or a pair of float and ndarray""",
}


def warnings_at_bounds(kernel: Kernel, optimizer: Any) -> list[ConvergenceWarning]:
    """Warnings of scikit-learn about hyper-parameters of its kernels that a search has left at their bounds."""
    if optimizer is None or not isinstance(kernel, ScikitLearnKernel):
        return []
    return [ConvergenceWarning(words) for words in kernel.at_bounds()]


def require_finite_bounds(kernel: Kernel, restarts: int) -> None:
    """Starts can only be drawn from a box."""
    if restarts and isinstance(kernel, ScikitLearnKernel) and not np.isfinite(kernel.bounds).all():
        raise ParameterError(
            f"n_restarts_optimizer={restarts}: drawing starts requires that all bounds are finite, those of "
            f"kernel={kernel!r:.60} are not"
        )


class Likelihood(Protocol):
    """Interface of a likelihood to the search."""

    #: Half the number of observations, at least one: what the terms of the likelihood are about.
    scale: float
    #: Of the last gradient: its standard error where it is an estimate, or what rounding has done to it.
    standard_error: float

    def start(self, theta: np.ndarray) -> None:
        """Prepare for evaluations near theta."""

    def state(self) -> dict[str, Any]:
        """State of the start, to go on from it later."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""

    def subset(self, chosen: np.ndarray) -> Likelihood:
        """The likelihood of some of the rows."""

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        """The logarithm of the likelihood, and its derivatives."""


@dataclass(frozen=True)
class Plan:
    """Starts, optimizer and tolerances of a search."""

    theta: np.ndarray
    bounds: np.ndarray
    optimizer: Any
    restarts: int
    tol: float
    max_iter: int
    seed: int

    def starts(self) -> np.ndarray:
        """The given theta, then draws from the box: uniform on the scale of logarithms."""
        low, high = self.bounds.T
        drawn = stream(self.seed, "start").uniform(low, high, size=(self.restarts, len(self.theta)))
        return np.vstack([np.clip(self.theta, *self.bounds.T), drawn])


def maximise(
    likelihood: Likelihood, plan: Plan, monitor: Monitor, state: Mapping[str, Any] | None, n: int, n_subset: int
) -> BoxMaximum:
    """The hyper-parameters that maximise a likelihood of n rows; those given, where no optimizer is to change them.

    Where `n_subset` is larger than 0 the search is rehearsed on as many of the rows.
    """
    theta = plan.theta
    if plan.optimizer is None or not len(theta):
        likelihood.start(theta)
        value, _ = likelihood.value_and_gradient(theta, False)
        monitor(1, theta, objective=-value)
        return BoxMaximum(theta, value, np.zeros(len(theta)), np.eye(len(theta)), 1, "fixed")
    part: Likelihood | None = None
    if n_subset:
        part = likelihood.subset(np.sort(stream(plan.seed, "part").choice(n, n_subset, replace=False)))
    return _search(likelihood, plan, monitor, state, part, n_subset / n)


def _search(
    likelihood: Likelihood,
    plan: Plan,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    part: Likelihood | None,
    share: float,
) -> BoxMaximum:
    """The best summit of all starts.

    Where there is a `part` of the data, all starts are climbed on it, and only the best of them is climbed once more,
    on all rows, with the curvature of the part divided by its `share`.
    """
    starts, B = plan.starts(), None
    best: BoxMaximum | None = None
    latest: Callable[[], dict[str, Any]] | None = None
    first, done = 0, 0
    if state is not None:
        starts, first, done = np.asarray(state["starts"]), int(state["start"]), int(state["done"])
        B = np.asarray(state["B"])
        if "best_theta" in state:
            none = np.full(starts.shape[1], np.nan)
            before = np.asarray(state["best_theta"]), float(state["best_value"])
            best = BoxMaximum(*before, none, np.eye(len(none)), done, "stopped")
        starts = starts.copy()
        starts[first] = state["theta"]
    elif part is not None and plan.optimizer == "bfgs":
        rehearsed = _rehearse(part, plan, starts)
        if rehearsed is not None:
            starts, B = rehearsed.theta[None], rehearsed.B / share
    for index in range(first, len(starts)):
        resumed = state is not None and index == first
        if state is not None and resumed:
            likelihood.restore(state)
        else:
            likelihood.start(starts[index])

        kept = {} if best is None else {"best_theta": best.theta, "best_value": best.value}

        def report(
            iteration: int,
            theta: np.ndarray,
            value: float,
            steep: float,
            B: np.ndarray,
            index: int = index,
            kept: dict[str, Any] = kept,
        ) -> bool:
            nonlocal latest

            def now() -> dict[str, Any]:
                mine = {"theta": theta, "B": B, "start": index, "done": iteration, "starts": starts, "seed": plan.seed}
                return {**mine, **likelihood.state(), **kept}

            latest = now
            return monitor(iteration, theta, objective=-value, gradient=steep, start=float(index), state=now)

        found = _climb(likelihood, starts[index], plan, B, report, done, resumed)
        B, done = None, found.n_iter
        if best is None or found.value > best.value:
            best = found
        if found.reason == "stopped":
            best = found if best is None else best
            best.reason = "stopped"
            break
    assert best is not None
    if np.isnan(best.gradient).any():  # of a start before the fit was resumed
        likelihood.start(best.theta)
        best.value, best.gradient = likelihood.value_and_gradient(best.theta)
        steep = relative_slope(best.theta, best.gradient, plan.bounds, likelihood.scale)
        best.reason = "converged" if steep <= plan.tol else best.reason
    best.n_iter = done
    best.state = {} if latest is None else latest()
    return best


def _rehearse(part: Likelihood, plan: Plan, starts: np.ndarray) -> BoxMaximum | None:
    """The best summit on some of the rows; None where every start fails there."""
    best: BoxMaximum | None = None
    for theta in starts:
        part.start(theta)
        found = maximise_in_box(
            _curved(part),
            theta,
            plan.bounds,
            tol=_REHEARSAL_FACTOR * plan.tol,
            scale=part.scale,
            max_iter=plan.max_iter,
        )
        if best is None or found.value > best.value:
            best = found
    return best


def _curved(likelihood: Any) -> Callable[[np.ndarray, bool], tuple[float, np.ndarray, np.ndarray | None]]:
    """The likelihood with its information, where it has one."""
    if hasattr(likelihood, "with_curvature"):
        return likelihood.with_curvature  # type: ignore[no-any-return]  # an optional method

    def plain(theta: np.ndarray, _curved: bool) -> tuple[float, np.ndarray, np.ndarray | None]:
        return *likelihood.value_and_gradient(theta), None

    return plain


def _climb(
    likelihood: Likelihood,
    theta: np.ndarray,
    plan: Plan,
    B: np.ndarray | None,
    report: Callable[[int, np.ndarray, float, float, np.ndarray], bool],
    done: int,
    resumed: bool,
) -> BoxMaximum:
    if plan.optimizer == "bfgs":
        return maximise_in_box(
            _curved(likelihood),
            theta,
            plan.bounds,
            # a gradient that is known to its standard error only cannot be made smaller than that
            tol=lambda: max(plan.tol, 0.5 * likelihood.standard_error / likelihood.scale),
            scale=likelihood.scale,
            max_iter=plan.max_iter,
            B=B,
            report=report,
            done=done,
            resumed=resumed,
        )

    worst = [np.inf]

    def objective(theta: np.ndarray, eval_gradient: bool = True) -> Any:
        try:
            value, gradient = likelihood.value_and_gradient(np.asarray(theta, dtype=np.float64), eval_gradient)
        except NotPositiveError:
            value, gradient = -10 * abs(worst[0]) - 1e6, np.zeros(len(theta))
        worst[0] = value
        return (-value, -gradient) if eval_gradient else -value

    if plan.optimizer == "fmin_l_bfgs_b":
        found = scipy.optimize.minimize(objective, theta, method="L-BFGS-B", jac=True, bounds=plan.bounds)
        end = np.asarray(found.x)
    else:
        end = np.asarray(plan.optimizer(objective, theta, plan.bounds)[0], dtype=np.float64)
    end = np.clip(end, *plan.bounds.T)
    value, gradient = likelihood.value_and_gradient(end)
    steep = relative_slope(end, gradient, plan.bounds, likelihood.scale)
    report(done + 1, end, value, steep, np.eye(len(end)))
    return BoxMaximum(end, value, gradient, np.eye(len(end)), done + 1, "converged" if steep <= plan.tol else "stalled")


def certify(
    summit: BoxMaximum, bounds: np.ndarray, likelihood: Likelihood, tol: float, kind: str, error: float, words: str
) -> tuple[Certificate, str]:
    """(certificate, why the search ended), for a search, or for hyper-parameters that stayed as they were.

    kind, error, words : a second quantity that has to be small, such as the backward error of a linear system
    """
    if summit.reason == "fixed":
        certificate = Certificate(kind, error, tol, words)
    else:
        steep = relative_slope(summit.theta, summit.gradient, bounds, likelihood.scale)
        tolerance = max(tol, likelihood.standard_error / likelihood.scale)
        meaning = (
            f"by no hyper-parameter within its bounds does the log marginal likelihood rise faster than {steep:.1e} "
            "for every two observations: a stationary point, a local optimum as a rule (further starts may find "
            f"another); {words}"
        )
        if tolerance > tol:
            meaning += (
                f"; the gradient itself is known to {tolerance:.1e} only, for rounding or the draws it comes from"
            )
        certificate = Certificate("projected gradient", max(steep, error), tolerance, meaning)
    reason = summit.reason if summit.reason in ("stopped", "max_iter") else "stalled"
    return certificate, "converged" if certificate.holds and reason != "stopped" else reason
