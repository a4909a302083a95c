r"""Expectation maximisation: theta <- argmax_theta E[log p(x, z; theta) | x; theta_old], until the likelihood stays.

With the surrogate Q of the M-step, L(theta) - L(theta_old) >= Q(theta | theta_old) - Q(theta_old | theta_old): the
log-likelihood L never falls. Here a fall is an error, since it shows that an E-step or an M-step is wrong.

SQUAREM (Varadhan and Roland 2008) extrapolates two steps r = F(theta) - theta and F(F(theta)) - F(theta) = r + v to
theta + 2 a r + a^2 v with a = |r| / |v|. Where this leaves the set of parameters, or L would fall, the two plain steps
are taken instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError
from epicycle.core._history import History
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data import Data
from epicycle.em._latent_model import Expectation, LatentModel
from epicycle.engine._ordered import in_order


@dataclass
class EMSolution(Solution):
    """A :class:`~epicycle.optim.Solution` with the parameters and the last E-step; `value` is minus the mean of L."""

    parameters: Any = None
    expectation: Expectation = field(default_factory=lambda: Expectation(-np.inf, (), 0.0))
    #: L and the prior together: what never falls.
    log_likelihood: float = -np.inf
    start: int = 0


@dataclass
class Point:
    """Parameters, their E-step, and L with the logarithm of the prior."""

    parameters: Any
    found: Expectation
    value: float


@dataclass
class Progress:
    """State of a climb: M-steps done, gain and size of the last one, plain ones in a row that gained little."""

    n_iter: int = 0
    gain: float = np.inf
    step: float = np.inf
    quiet: int = 0


@in_catalogue("mixture", "E5", certificate="stationarity")
def run_em(
    model: LatentModel,
    data: Data,
    start: Any,
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
    accelerate: bool = False,
    monitor: Monitor | None = None,
    n_jobs: int | None = None,
    state: Mapping[str, Any] | None = None,
    columns: Mapping[str, float] | None = None,
) -> EMSolution:
    """Climb from one start until two EM steps in a row raise the mean log-likelihood by no more than `tol` each.

    Parameters
    ----------
    model : LatentModel
    data : Data
        Rows in memory, files or a Dask collection; see :func:`epicycle.data.as_data`.
    start : parameters of the model
    max_iter : int, default=1000
        Maximum number of M-steps.
    tol : float, default=1e-6
        Largest gain of the last step, in nats per unit of weight.
    accelerate : bool, default=False
        Whether to extrapolate by SQUAREM.
    monitor : Monitor, optional
        Records the history: `objective` (minus the mean of L), `log_likelihood`, the relative size of the `step`, and
        whether the point was `accelerated`. What it returns may end the climb.
    n_jobs : int, optional
        Threads of a pass.
    state : mapping, optional
        That of an interrupted climb.
    columns : mapping of str to float, optional
        Further columns of the history.

    Raises
    ------
    ConvergenceError
        The log-likelihood fell, or is no number.

    Examples
    --------
    The allele frequency behind 40 people of whom 36 show a dominant trait: whether they carry it once or twice is
    latent.

    >>> import numpy as np
    >>> from epicycle.data import as_data
    >>> from epicycle.em import LatentModel, run_em
    >>> class Dominant(LatentModel):
    ...     def e_step(self, batch, q):
    ...         shows = batch.X[:, 0]
    ...         seen = q * (2 - q)  # q^2 + 2 q (1 - q)
    ...         value = shows @ np.full(len(shows), np.log(seen)) + (1 - shows) @ np.full(len(shows), np.log(1 - seen))
    ...         return value, float((shows * 2 / (2 - q)).sum()), 2 * len(shows)  # alleles that are dominant, all
    ...     def m_step(self, statistics, q):
    ...         dominant, alleles = statistics
    ...         return dominant / alleles
    >>> rows = as_data(np.repeat([[1.0], [0.0]], [36, 4], axis=0))
    >>> found = run_em(Dominant(), rows, 0.5, tol=1e-12)
    >>> print(found.reason, round(found.parameters, 5), round(1 - np.sqrt(0.1), 5))
    converged 0.68377 0.68377
    """
    monitor = Monitor() if monitor is None else monitor
    at = Progress()
    if state is not None:
        at = Progress(int(state["iteration"]), float(state["gain"]), float(state["step"]), int(state["quiet"]))
    parameters = start if state is None else model.from_vector(np.array(state["x"]), start)
    point = _evaluated(model, data, parameters, n_jobs)
    if not np.isfinite(point.value):
        raise ConvergenceError(f"EM: the log-likelihood of the start is {point.value}; expected a number")
    climb = _Climb(model, data, n_jobs, accelerate)
    if state is not None:
        climb.restore(state, start)
    reason = "max_iter"
    while at.n_iter < max_iter:
        new, accelerated = climb.advance(point, at.n_iter + 1)
        gain = (new.value - point.value) / max(new.found.weight, np.finfo(float).tiny)
        x, before = model.to_vector(new.parameters), model.to_vector(point.parameters)
        # The gain of an extrapolation says nothing about the plain steps from there, unless it is large.
        quiet = 0 if gain > tol else at.quiet + (not accelerated)
        at = Progress(at.n_iter + 1, gain, _relative(x - before, before), quiet)
        point = new
        stop = monitor(
            at.n_iter,
            x,
            objective=-point.value / point.found.weight,
            state=lambda x=x, at=at: climb.state(x, at),  # type: ignore[misc]
            **(columns or {}),
            log_likelihood=point.value,
            step=at.step,
            accelerated=float(accelerated),
        )
        if at.quiet == 2:
            reason = "converged"
            break
        if stop:
            reason = "stopped"
            break
    x = model.to_vector(point.parameters)
    meaning = (
        f"the last EM step raised the mean log-likelihood by no more, and moved the parameters by {at.step:.1e} of "
        "their size: a stationary point of the likelihood to this precision, not always its highest"
    )
    return EMSolution(
        x,
        -point.value / point.found.weight,
        monitor.history(),
        Certificate("stationarity", max(at.gain, 0.0), float(tol), meaning),
        at.n_iter,
        reason,
        state=climb.state(x, at),
        parameters=point.parameters,
        expectation=point.found,
        log_likelihood=point.value,
    )


class _Climb:
    """The points of a climb: plain EM steps, and after every second one an extrapolation where it is asked for."""

    def __init__(self, model: LatentModel, data: Data, n_jobs: int | None, accelerate: bool) -> None:
        self.model, self.data, self.n_jobs, self.accelerate = model, data, n_jobs, accelerate
        #: The point one plain step back, if an extrapolation may start there.
        self.behind: Any = None

    def advance(self, point: Point, iteration: int) -> tuple[Point, bool]:
        """(the next point, whether it was extrapolated)."""
        model = self.model
        after = model.m_step(point.found.statistics, point.parameters)
        behind, self.behind = self.behind, None
        if self.accelerate and behind is not None:
            tried = self._extrapolated(model.to_vector(behind), point, after)
            if tried is not None:
                return tried, True
        new = _evaluated(model, self.data, after, self.n_jobs)
        _require_rise(model, point, new, iteration)
        if behind is None:
            self.behind = point.parameters
        return new, False

    def _extrapolated(self, x0: np.ndarray, point: Point, after: Any) -> Point | None:
        """SQUAREM's point from three in a row, or None where it is not allowed or L falls."""
        x1, x2 = self.model.to_vector(point.parameters), self.model.to_vector(after)
        r = x1 - x0
        v = (x2 - x1) - r
        size, curvature = float(np.linalg.norm(r)), float(np.linalg.norm(v))
        if not 0 < curvature < size:  # a step of at most one is the plain one
            return None
        a = size / curvature
        with np.errstate(over="ignore", invalid="ignore"):
            x = x0 + 2 * a * r + a * a * v
        if not np.isfinite(x).all():
            return None
        with np.errstate(over="ignore"):  # a logarithm that was extrapolated too far
            parameters = self.model.normalised(self.model.from_vector(x, after))
        if not self.model.feasible(parameters):
            return None
        try:
            tried = _evaluated(self.model, self.data, parameters, self.n_jobs)
        except (ArithmeticError, ValueError):  # not a parameter after all, such as a covariance that has no factor
            return None
        return tried if np.isfinite(tried.value) and tried.value >= point.value else None

    def state(self, x: np.ndarray, at: Progress) -> Mapping[str, Any]:
        """All that is needed to go on from here."""
        kept = {"x": x, "iteration": at.n_iter, "gain": at.gain, "step": at.step, "quiet": at.quiet}
        return kept if self.behind is None else {**kept, "behind": self.model.to_vector(self.behind)}

    def restore(self, state: Mapping[str, Any], like: Any) -> None:
        if "behind" in state:
            self.behind = self.model.from_vector(np.array(state["behind"]), like)


def _evaluated(model: LatentModel, data: Data, parameters: Any, n_jobs: int | None) -> Point:
    found = model.expectation(data, parameters, n_jobs)
    return Point(parameters, found, found.log_likelihood + model.log_prior(parameters))


def _require_rise(model: LatentModel, old: Point, new: Point, iteration: int) -> None:
    """Raise where the log-likelihood fell by more than rounding."""
    if np.isfinite(new.value):
        allowed = model.rounding(new.parameters) * (abs(old.value) + abs(new.value) + new.found.weight)
        if new.value >= old.value - allowed:
            return
        what = (
            f"fell from {old.value:.12g} to {new.value:.12g}, by {old.value - new.value:.3g} where rounding explains "
        )
        what += f"{allowed:.1g}"
    else:
        what = f"became {new.value} after {old.value:.12g}"
    raise ConvergenceError(
        f"EM iteration {iteration}: the log-likelihood {what}. An EM step cannot lower it: check that the E-step of "
        f"{type(model).__name__} takes the expectations at the present parameters, and that its M-step maximises"
    )


def _relative(difference: np.ndarray, x: np.ndarray) -> float:
    # BLAS takes norms of numbers whose squares overflow, which NumPy does not.
    size, moved = (float(scipy.linalg.norm(v, check_finite=False)) for v in (x, difference))
    return moved / max(size, np.finfo(float).tiny)


def fit_by_em(
    estimator: Any,
    model: LatentModel,
    data: Data,
    starts: int,
    begin: Callable[[int], Any],
    attributes: Callable[[np.ndarray], dict[str, Any]],
    *,
    seed: int,
    state: Mapping[str, Any] | None,
) -> EMSolution:
    """The best of several climbs with the arguments of an estimator; `attributes` are those of it at a vector."""
    return run_starts(
        model,
        data,
        starts,
        begin,
        monitor=estimator._monitor(starts * int(estimator.max_iter), attributes),
        max_iter=int(estimator.max_iter),
        tol=float(estimator.tol),
        accelerate=bool(estimator.accelerate),
        n_jobs=estimator.n_jobs,
        state=state,
        kept={"seed": seed},
        parallel=not (estimator._has_callbacks() or estimator.verbose),
    )


@in_catalogue("mixture", "E5", certificate="stationarity")
def run_starts(
    model: LatentModel,
    data: Data,
    starts: int,
    begin: Callable[[int], Any],
    *,
    monitor: Monitor,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    n_jobs: int | None = None,
    state: Mapping[str, Any] | None = None,
    kept: Mapping[str, Any] | None = None,
    parallel: bool = True,
) -> EMSolution:
    """The best of several climbs; of equal ones the first. ``begin(i)`` gives the parameters of start i.

    With ``parallel=True`` climbs share the threads, and each has a history of its own, one after the other in the
    result; otherwise they follow each other under one monitor, and an interrupted fit goes on from its `state`, in
    which `kept` (the seed, say) stands too.
    """
    options: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "accelerate": accelerate, "n_jobs": n_jobs}
    if parallel and starts > 1 and state is None:
        return _in_parallel(model, data, starts, begin, options)
    first, best = 0, None
    if state is not None:
        first = int(state["start"])
        if "best" in state:
            parameters = model.from_vector(np.array(state["best"]), begin(int(state["best_start"])))
            best = run_em(model, data, parameters, **{**options, "max_iter": 0})
            best = _as_it_was(best, state)
    for i in range(first, starts):
        place = {**(kept or {}), "start": i}
        if best is not None:
            place |= {"best": best.x, **_evidence(best)}
        climb = run_em(
            model,
            data,
            begin(i),
            monitor=_Placed(monitor, place),
            state=state if i == first else None,
            columns={"start": float(i)} if starts > 1 else None,
            **options,
        )
        climb.start, climb.state = i, {**climb.state, **place}
        if best is None or climb.log_likelihood > best.log_likelihood or climb.reason == "stopped":
            best = climb
        if climb.reason == "stopped":
            break
    assert best is not None
    best.history = monitor.history()
    return best


def _evidence(best: EMSolution) -> dict[str, Any]:
    certificate = best.certificate
    return {
        "best_start": best.start,
        "best_iter": best.n_iter,
        "best_reason": best.reason,
        "best_gain": certificate.value,
        "best_meaning": certificate.meaning,
    }


def _as_it_was(best: EMSolution, state: Mapping[str, Any]) -> EMSolution:
    """The best climb before an interruption, with its evidence."""
    tolerance = best.certificate.tolerance
    best.certificate = Certificate("stationarity", state["best_gain"], tolerance, str(state["best_meaning"]))
    best.n_iter, best.reason, best.start = int(state["best_iter"]), str(state["best_reason"]), int(state["best_start"])
    return best


class _Placed(Monitor):
    """A monitor that adds where the climb stands among the starts to the state that is kept."""

    def __init__(self, monitor: Monitor, place: Mapping[str, Any]) -> None:
        super().__init__()
        self.monitor, self.place = monitor, place

    def __call__(self, iteration: int, x: np.ndarray, *, objective: float, state: Any = None, **columns: float) -> bool:
        return self.monitor(
            iteration, x, objective=objective, state=lambda: {**(state() if state else {}), **self.place}, **columns
        )

    def history(self) -> History:
        return self.monitor.history()


def _in_parallel(
    model: LatentModel, data: Data, starts: int, begin: Callable[[int], Any], options: Mapping[str, Any]
) -> EMSolution:
    found: list[EMSolution] = []
    # One after the other: they may use threads of their own, and filters of warnings, which threads share.
    first = [begin(i) for i in range(starts)]

    def climb(i: int) -> EMSolution:
        solution = run_em(model, data, first[i], columns={"start": float(i)}, **options)
        solution.start = i
        return solution

    threads = min(n_threads(float("inf"), options["n_jobs"]), starts)
    in_order(range(starts), climb, found.append, threads)
    best = max(found, key=lambda solution: solution.log_likelihood)  # the first of equal ones
    names = found[0].history.columns
    best.history = History(**{name: np.concatenate([one.history[name] for one in found]) for name in names})
    return best
