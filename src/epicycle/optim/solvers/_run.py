"""The run of a solver: the state of its iteration, its record, and the rules by which it ends.

A solver is a loop, which :func:`minimiser` makes a function of an objective and a start:

    @minimiser("name")
    def solver(run, *, option=...):
        run.begin()
        while run.active:
            ...                      # the mathematics: from x to the next x
            run.advance(x, value, gradient, step=t, state=...)

Certificates can cost a pass over the data, so they are asked for only when the gradient norm says that they may hold.
A certificate c that failed at norm |g| says where to try next: gaps fall like |g|^2, so at |g| sqrt(tol / c).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim._objective import Objective

Array = np.ndarray
State = Mapping[str, Any]

#: Iterations in a row with a rising objective that count as divergence: steps that are only a little too long rise now
#: and then, not five times on end.
DIVERGING_RISES = 5
#: Share of the lowest gradient norm below which another one is progress.
FLATTER = 0.99
#: Iterations between two certificates when only the flatness of the objective suggests trying one.
ITERATIONS_BETWEEN_TRIALS = 10


class Run:
    """The state of one minimisation.

    Parameters
    ----------
    solver : str
        Name, kept in the state so that a run resumes only what it began.
    objective, start, tol, max_iter, monitor, state
        As every solver takes them.
    """

    #: Advice for an iteration that diverges.
    remedy = "scale the problem"
    #: Iterations without any progress, in value or gradient, after which the run has stalled; None waits for ever.
    patience: int | None = 20

    def __init__(
        self,
        solver: str,
        objective: Objective,
        start: Array,
        *,
        tol: float,
        max_iter: int,
        monitor: Monitor | None,
        state: State | None,
    ) -> None:
        check_number("tol", tol, low=0.0)
        check_number("max_iter", max_iter, low=0, integer=True)
        self.objective = objective
        self.tol = float(tol)
        self.max_iter = int(max_iter)
        self.monitor = Monitor() if monitor is None else monitor
        self.saved: State = state or {}
        if self.saved and self.saved.get("solver") != solver:
            raise ParameterError(f"state must come from solver {solver!r}; it comes from {self.saved.get('solver')!r}")
        self.iteration = int(self.saved.get("iteration", 0))
        self.x = check_point(self.saved["x"] if self.saved else start, objective.size)
        self.value = math.inf
        self.gradient = np.zeros(0)
        self.norm = math.inf
        self.active, self.reason = True, ""
        self.message = ""
        self._solver = solver
        self._solver_state: Callable[[], State] = dict
        self._step = math.nan
        self._certificate: Certificate | None = None

    def begin(self, value: float | None = None, gradient: Array | None = None) -> None:
        """Take in F and its gradient at the start, as given or evaluated here; the start may be optimal already."""
        if value is None or gradient is None:
            value, gradient = self.objective.value_and_gradient(self.x)
        self.value, self.gradient, self.norm = value, gradient, _norm(gradient)
        saved = self.saved
        self._threshold = float(saved.get("threshold", math.inf))
        self._tried = int(saved.get("tried", self.iteration))
        self._first = float(saved.get("first", value))
        self._rises = int(saved.get("rises", 0))
        self._idle = int(saved.get("idle", 0))
        self._least_norm = float(saved.get("least_norm", self.norm))
        self._best_value = float(saved.get("best_value", value))
        self._best_norm = float(saved.get("best_norm", self.norm))
        self._best_x = np.array(saved["best_x"]) if saved else self.x
        self._best_gradient = gradient if np.array_equal(self._best_x, self.x) else None
        self._fall = float(saved.get("fall", math.inf))
        if not (math.isfinite(value) and math.isfinite(self.norm)):
            self.end("diverged", "the objective or its gradient is not finite at the start; change the start or X")
        elif self._certified():
            self.end("converged")
        elif self.iteration >= self.max_iter:
            self._end_at_limit()

    def advance(
        self,
        x: Array,
        value: float,
        gradient: Array,
        *,
        step: float,
        state: Callable[[], State] = dict,
        exact: bool = True,
        **columns: float,
    ) -> None:
        """Take in the next iterate, record it, and decide whether to go on.

        `state` gives what the solver itself needs to resume; `exact=False` says that value and gradient come from a
        recursion, on which no certificate may rest.
        """
        self.iteration += 1
        self._step = step
        norm = _norm(gradient)
        finite = math.isfinite(value) and math.isfinite(norm)
        if finite:
            self._rises = self._rises + 1 if value > self.value else 0
            self._fall = self.value - value
            # Values that differ by rounding only are compared by their gradients, and those fall and rise by rounding
            # too: a new lowest one is progress where it shows.
            rounding = 1e-14 * abs(self._best_value)
            lower, flatter = value < self._best_value - rounding, norm < FLATTER * self._least_norm
            self._idle = 0 if lower or flatter else self._idle + 1
            self._least_norm = norm if flatter else self._least_norm
            if lower or (value <= self._best_value + rounding and norm < self._best_norm):
                self._best_value, self._best_x, self._best_norm = value, x, norm
                self._best_gradient = gradient if exact else None
            self.x, self.value, self.gradient, self.norm = x, value, gradient, norm
            self._solver_state = state
        stop = self.monitor(
            self.iteration, self.x, objective=value, state=self._state, step=step, gradient_norm=norm, **columns
        )
        if not finite:
            self.end("diverged", f"the objective became {value} with step={step:g}; {self.remedy}")
        elif self._rises >= DIVERGING_RISES and value > self._first + 1e-8 * abs(self._first):
            self.end(
                "diverged",
                f"the objective grew in {self._rises} iterations in a row, from {self._first:.6g} at the start "
                f"to {value:.6g}, with step={step:g}; {self.remedy}",
            )
        elif exact and self._certified():
            self.end("converged")
        elif stop:
            self.end("stopped", f"stopped by a callback after iteration {self.iteration}")
        elif self.patience is not None and self._idle >= self.patience:
            self.stall()
        elif self.iteration >= self.max_iter:
            self._end_at_limit()

    def improve(self, x: Array, value: float, gradient: Array) -> None:
        """Put a point with a smaller gradient in the place of the certified one, if its certificate holds as well."""
        certificate = self.objective.certify(x, self.tol, value, gradient)
        if certificate.holds:
            self.x, self.value, self.gradient, self._certificate = x, value, gradient, certificate

    def end(self, reason: str, message: str = "") -> None:
        """End the run for this reason."""
        self.active, self.reason, self.message = False, reason, message

    def stall(self) -> None:
        """No step makes progress: converged if the certificate holds after all, otherwise stalled."""
        if self.certify():
            return
        at_precision = self.value - self._best_value <= 1e-10 * max(abs(self._best_value), np.finfo(float).tiny)
        why = (
            "the objective cannot be lowered further in double precision; loosen tol or scale the columns of X"
            if at_precision
            else f"the objective no longer falls with step={self._step:g}; {self.remedy}"
        )
        self.end("stalled", f"after {self.iteration} iterations {why}")

    def solution(self) -> Solution:
        """The certified iterate, otherwise the best finite one."""
        if self.reason == "converged" and self._certificate is not None:
            x, value, certificate = self.x, self.value, self._certificate
        elif not math.isfinite(self._best_value):
            meaning = "nothing is known: the objective is not finite at the start"
            x, value, certificate = self.x, self.value, Certificate("none", math.inf, self.tol, meaning)
        else:
            x, value = self._best_x, self._best_value
            known = value if self._best_gradient is not None else None
            certificate = self.objective.certify(x, self.tol, known, self._best_gradient)
            if certificate.holds and self.reason in ("max_iter", "stalled"):
                self.reason, self.message = "converged", ""
            if certificate.holds and self.reason == "diverged":
                # The best point seen may be flat (x^3 at 0) where the iteration found no minimum.
                meaning = "nothing is known: the iteration diverged"
                certificate = Certificate(certificate.kind, math.inf, self.tol, meaning)
        resumable = self.reason in ("max_iter", "stopped")
        return Solution(
            x=x,
            value=value,
            history=self.monitor.history(),
            certificate=certificate,
            n_iter=self.iteration,
            reason=self.reason,
            message=self.message,
            state=self._state() if resumable else {},
        )

    def certify(self) -> bool:
        """Try for a certificate here whatever the gradient norm; True ends the run."""
        self._threshold = max(self._threshold, self.norm)
        if self._certified():
            self.end("converged")
        return not self.active

    def may_certify(self, gradient: Array) -> bool:
        """Whether the gradient is small enough to try for a certificate."""
        return _norm(gradient) <= self._threshold

    def _certified(self) -> bool:
        rested = self.iteration - self._tried >= ITERATIONS_BETWEEN_TRIALS
        flat = rested and abs(self._fall) <= 0.1 * self.tol * abs(self.value)
        if self.norm > self._threshold and not flat:
            return False
        self._tried = self.iteration
        certificate = self.objective.certify(self.x, self.tol, self.value, self.gradient)
        if certificate.holds:
            self._certificate = certificate
            return True
        predicted = math.sqrt(self.tol / certificate.value) if 0 < certificate.value < math.inf else 0.1
        self._threshold = min(self.norm * min(predicted, 0.5), self._threshold)
        return False

    def _end_at_limit(self) -> None:
        rose = self.value > self._best_value + 1e-8 * abs(self._best_value)
        hint = f"; the objective rises and falls with step={self._step:g}: {self.remedy}" if rose else ""
        self.end("max_iter", f"the certificate did not hold after max_iter={self.max_iter} iterations{hint}")

    def _state(self) -> State:
        return {
            "solver": self._solver,
            "iteration": self.iteration,
            "x": self.x.copy(),
            "threshold": self._threshold,
            "tried": self._tried,
            "first": self._first,
            "rises": self._rises,
            "idle": self._idle,
            "least_norm": self._least_norm,
            "best_value": self._best_value,
            "best_norm": self._best_norm,
            "best_x": self._best_x.copy(),
            "fall": self._fall,
            **self._solver_state(),
        }


SOLVER_DOCS: dict[str, str] = {
    "objective": "objective : Objective\n    F, with its gradient.",
    "start": "start : array of shape (d,)\n    Where to begin.",
    "tol": "tol : float, default={default}\n    What the certificate of the objective has to reach.",
    "max_iter": "max_iter : int, default={default}\n    Iterations, counted from the very first also when resuming.",
    "monitor": "monitor : Monitor, optional\n    Called after every iteration.",
    "state": "state : mapping, optional\n    Resumes a run from what its monitor was given.",
    "precondition": "precondition : bool, default={default}\n    Work in the coordinates of the objective's metric.",
}


def minimiser(
    name: str, *, tol: float = 1e-8, max_iter: int = 1_000
) -> Callable[[Callable[..., None]], Callable[..., Solution]]:
    """Decorate the loop ``body(run, **options)`` of a solver: a function of an objective and a start.

    A solver of several rules is called by the one that its option `rule` names.
    """

    def decorate(body: Callable[..., None]) -> Callable[..., Solution]:
        def minimise(
            objective: Objective,
            start: Array,
            *,
            tol: float = tol,
            max_iter: int = max_iter,
            monitor: Monitor | None = None,
            state: State | None = None,
            **options: Any,
        ) -> Solution:
            called = str(options.get("rule", name))
            run = Run(called, objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state)
            body(run, **options)
            return run.solution()

        common = list(inspect.signature(minimise).parameters.values())[:-1]
        return solver_like(body, minimise, [*common, *list(inspect.signature(body).parameters.values())[1:]])

    return decorate


def solver_like(
    body: Callable[..., Any], minimise: Callable[..., Solution], parameters: list[inspect.Parameter]
) -> Callable[..., Solution]:
    """The function `minimise` with these parameters, under the name and docstring of `body`."""
    minimise = wraps(body)(minimise)
    minimise.__dict__["__signature__"] = inspect.Signature(parameters, return_annotation="Solution")
    return in_catalogue("optim", "A2", certificate="that of the objective")(documented(SOLVER_DOCS)(minimise))


def check_number(
    name: str, value: object, *, low: float | None = None, strict: bool = False, integer: bool = False
) -> None:
    """Refuse an argument that is not a finite number of the wanted kind, at or above (strict: above) `low`."""
    kind = "an integer" if integer else "a number"
    wanted = int | np.integer if integer else int | float | np.integer | np.floating
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise ParameterTypeError(f"{name} must be {kind}, got {value!r} of type {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {value!r}")
    if low is not None and (number <= low if strict else number < low):
        raise ParameterError(f"{name} must be {kind} {'above' if strict else 'at least'} {low:g}, got {value!r}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse an argument that is not one of the named choices."""
    if value not in choices:
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def _norm(gradient: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(gradient @ gradient))


def check_point(start: Array, size: int) -> Array:
    """A private float64 copy of the start, refused unless it is finite and has one number for each parameter."""
    x = np.array(start, dtype=np.float64)
    if x.shape != (size,):
        raise ParameterError(f"start must have shape ({size},), the number of parameters; got {x.shape}")
    if not np.isfinite(x).all():
        raise ParameterError("start must be finite; it contains nan or inf, as after a Floating-point under-/overflow")
    return x
