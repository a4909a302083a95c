"""Gradient descent: x <- x - t F'(x), with a fixed step, a line search, or a step found on the learning-rate ladder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim._objective import Objective
from epicycle.optim.solvers._line_search import backtracking
from epicycle.optim.solvers._run import Run, State, check_choice, check_number, minimiser
from epicycle.optim.solvers._whitening import preconditioned

Array = np.ndarray

#: The line search asks for a decrease below the largest of so many last values. A strict decrease in every iteration
#: would cut the long steps short that make spectral steps fast (Grippo, Lampariello and Lucidi 1986; Raydan 1997).
RECENT = 10


@preconditioned()
@minimiser("gd", max_iter=10_000)
def gradient_descent(run: Run, *, step: float | str = "line-search") -> None:
    """Minimise by gradient descent.

    Parameters
    ----------
    step : float, "line-search" or "ladder", default="line-search"
        A fixed step; a backtracking line search that starts from the step that fits the curvature along the last
        move (Barzilai and Borwein) and lets the objective rise for a while, never above its last ten values; or the
        largest step of 0.001, 0.003, 0.01, ... that still descends, which goes down a rung whenever the objective
        rises after all.
    """
    if isinstance(step, str):
        check_choice("step", step, ("line-search", "ladder"))
    else:
        check_number("step", step, low=0.0, strict=True)
    run.remedy = "take a smaller step, or step='line-search' or 'ladder', or scale the columns of X"
    run.begin()
    if step == "line-search":
        run.patience = 200
        _with_line_search(run)
    else:
        _with_steps(run, step)


def _with_line_search(run: Run) -> None:
    x, gradient = run.x, run.gradient
    # The first trial moves by about one unit, or by the size of x where that is larger.
    guess = max(1.0, float(np.linalg.norm(x))) / max(run.norm, np.finfo(float).tiny)
    t = float(run.saved.get("step", guess))
    recent = [float(value) for value in run.saved.get("recent", [run.value])]
    while run.active:
        slope = -float(gradient @ gradient)
        trial = backtracking(run.objective, x, max(recent), slope, -gradient, first=t)
        if trial is None:
            run.stall()
            return
        s, y = trial.x - x, trial.gradient - gradient
        x, gradient = trial.x, trial.gradient
        recent = [*recent, trial.value][-RECENT:]
        bend = float(s @ y)
        t = min(float(s @ s) / bend, 1e3 * trial.t) if bend > 0 else 2 * trial.t
        run.advance(x, trial.value, gradient, step=trial.t, state=partial(_state, t, recent))


def _state(step: float, recent: list[float]) -> State:
    return {"step": step, "recent": np.array(recent)}


def _with_steps(run: Run, step: float | str) -> None:
    t = 0.0
    if run.active:
        fixed = float(step) if step != "ladder" else 0.0
        t = float(run.saved.get("step", fixed or learning_rate_ladder(run.objective, run.x).step))
    x, gradient = run.x, run.gradient
    while run.active:
        with np.errstate(over="ignore", invalid="ignore"):
            x_next = x - t * gradient
            value, next_gradient = run.objective.value_and_gradient(x_next)
        if step == "ladder" and not value <= run.value + 1e-13 * abs(run.value):
            t = _rung(t, -1)
            if t < 1e-300:
                run.stall()
            continue
        x, gradient = x_next, next_gradient
        run.advance(x, value, gradient, step=t, state=partial(dict, step=t))


@dataclass(frozen=True)
class Ladder:
    """The rungs that were tried, what became of each, and the step that was kept."""

    step: float
    steps: tuple[float, ...]
    values: tuple[float, ...]
    descends: tuple[bool, ...]


@in_catalogue("optim", "A2", certificate="none (a trial of steps)")
def learning_rate_ladder(objective: Objective, x: Array, *, n_iter: int = 10, first: float = 1e-3) -> Ladder:
    """The largest step of 0.001, 0.003, 0.01, 0.03, ... with which a short run of gradient descent still descends.

    Parameters
    ----------
    objective : Objective
        F, with its gradient.
    x : array of shape (d,)
        Where every short run begins.
    n_iter : int
        Length of a short run.
    first : float
        The first rung. If it does not descend, the ladder is climbed down instead.

    Returns
    -------
    Ladder
        Its `values` are what F came to at the end of each short run.
    """
    begin = objective.value_and_gradient(x)
    tried: dict[float, tuple[float, bool]] = {}
    t = first
    tried[t] = _short_run(objective, x, begin, t, n_iter)
    direction = 1 if tried[t][1] else -1
    # Up while it descends; down until it does. Steps outside these limits belong to a problem without scale.
    while tried[t][1] == (direction > 0) and 1e-30 < t < 1e30:
        t = _rung(t, direction)
        tried[t] = _short_run(objective, x, begin, t, n_iter)
    kept = max((t for t, (_, descends) in tried.items() if descends), default=min(tried))
    order = sorted(tried)
    return Ladder(kept, tuple(order), tuple(tried[t][0] for t in order), tuple(tried[t][1] for t in order))


def _short_run(objective: Objective, x: Array, begin: tuple[float, Array], t: float, n_iter: int) -> tuple[float, bool]:
    value, gradient = begin
    for _ in range(n_iter):
        with np.errstate(over="ignore", invalid="ignore"):
            x = x - t * gradient
            new_value, gradient = objective.value_and_gradient(x)
        if not new_value <= value:
            return new_value, False
        value = new_value
    return value, True


def _rung(t: float, direction: int) -> float:
    """The next step up or down the ladder ..., 0.001, 0.003, 0.01, 0.03, ..."""
    exponent = math.floor(math.log10(t) + 1e-9)
    leading_one = t / 10.0**exponent < 2
    if direction > 0:
        return float(f"3e{exponent}") if leading_one else float(f"1e{exponent + 1}")
    return float(f"3e{exponent - 1}") if leading_one else float(f"1e{exponent}")
