"""Stochastic and mini-batch gradient methods: many cheap moves, each from the gradient on a few rows.

Textbook stochastic gradients do not settle: with a fixed step x keeps moving around the optimum at a distance given by
the noise, and with steps c / t it comes closer only like 1 / t, which never reaches a useful certificate. Two things
mend it, and both are on unless turned off:

- variance reduction (SVRG; Johnson and Zhang 2013). Each epoch begins with the gradient F'(z) over all rows at its
  first point z, and moves along  g_B(x) - g_B(z) + F'(z).  This has the same mean as g_B(x), and a noise that vanishes
  as x and z approach the optimum, so that a step that stays large still converges, at a linear rate.
- the "adaptive" schedule. F is known at the end of every epoch (its gradient there is needed anyway). An epoch that
  lowered it is kept and the step grows a little; one that did not is taken back and the step shrinks.

Rows come in an order that depends on the seed and the number of the epoch alone, and the state after an epoch holds
everything that the next one needs, so a resumed run gives the same bits as one that was never interrupted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.optim._objective import Objective
from epicycle.optim.solvers._adam import GAMMA, RULES, SCHEDULES, Memory, scheduled
from epicycle.optim.solvers._run import Run, State, check_choice, check_number, minimiser
from epicycle.optim.solvers._whitening import preconditioned

Array = np.ndarray

GROWTH, SHRINKAGE, COLLAPSE = 1.1, 0.5, 0.1
#: The adaptive schedule gives up when the step has shrunk by this factor.
SMALLEST = 1e-12


@dataclass(frozen=True)
class Plan:
    """The choices of one run."""

    rule: str
    step: float
    schedule: str
    offset: float
    batch_size: int
    variance_reduction: bool
    average: bool
    seed: int


@dataclass
class Walk:
    """The state of the moves: all that changes from one to the next."""

    x: Array
    memory: Memory
    t: int
    scale: float
    mean: Array

    def copy(self) -> Walk:
        memory = {name: array.copy() for name, array in self.memory.items()}
        return Walk(self.x.copy(), memory, self.t, self.scale, self.mean.copy())


@preconditioned()
@minimiser("sgd", tol=1e-6)
def stochastic(
    run: Run,
    *,
    rule: str = "sgd",
    step: float | None = None,
    schedule: str = "adaptive",
    offset: float = 1.0,
    batch_size: int = 64,
    variance_reduction: bool = True,
    average: bool = False,
    seed: int = 0,
) -> None:
    """Minimise by stochastic gradients; an iteration is one epoch, a pass over all rows in mini-batches.

    Parameters
    ----------
    objective : Objective
        F, with mini-batches.
    rule : {"sgd", "momentum", "adagrad", "adadelta", "rmsprop", "adam"}
        How a gradient becomes a move.
    step : float, optional
        The step eta (c or a in the schedules). By default 1 / L for "sgd" and "momentum", with L the largest curvature
        seen along a few gradients; for the others a number that suits parameters of the order of one.
    schedule : {"adaptive", "constant", "inverse", "inverse-scaling", "1/sqrt"}
        eta adapted after each epoch, fixed, c / t, a / (b + t), or c / sqrt(t), where t counts moves.
    offset : float
        The b of "inverse-scaling".
    batch_size : int
        Rows for each move; 1 is the pure stochastic method.
    variance_reduction : bool
        Correct the gradients as above, at twice the price of each.
    average : bool
        Give back the mean of the iterates, in which later ones count more, instead of the last (Polyak averaging). It
        takes most of the noise out of a run with a decaying step; it cannot be had with the adaptive schedule.
    seed : int
        Of the order of the rows.
    """
    check_choice("rule", rule, tuple(RULES))
    check_choice("schedule", schedule, SCHEDULES)
    if step is not None:
        check_number("step", step, low=0.0, strict=True)
    check_number("offset", offset, low=0.0)
    check_number("batch_size", batch_size, low=1, integer=True)
    check_number("seed", seed, low=0, integer=True)
    if average and schedule == "adaptive":
        raise ParameterError("average=True needs a schedule other than 'adaptive', which judges each iterate by itself")
    if "minibatches" not in run.objective.capabilities:
        raise ParameterError(f"solver {rule!r} needs mini-batches; {type(run.objective).__name__} cannot draw rows")
    run.remedy = "take a smaller step or schedule='adaptive', or scale the columns of X"
    run.patience = None
    run.begin()
    if not run.active:
        return
    if step is None:
        step = run.saved["eta"] if run.saved else RULES[rule].step or _fitted_step(run, rule)
    plan = Plan(rule, float(step), schedule, offset, batch_size, variance_reduction, average, seed)
    _epochs(run, plan)


def _epochs(run: Run, plan: Plan) -> None:
    adaptive = plan.schedule == "adaptive"
    walk = _first_walk(run, plan)
    value, gradient = run.value, run.gradient
    epoch = int(run.saved.get("epoch", 0))
    while run.active:
        before = walk.copy()
        eta = _one_epoch(run.objective, walk, plan, epoch, run.x, gradient)
        epoch += 1
        reached = walk.mean if plan.average else walk.x
        with np.errstate(over="ignore", invalid="ignore"):
            new_value, new_gradient = run.objective.value_and_gradient(reached.copy())
        if adaptive and not _better(new_value, new_gradient, value, gradient):
            scale = walk.scale * (SHRINKAGE if new_value <= value + abs(value) else COLLAPSE)
            walk = before
            walk.scale = scale
            if "v" in walk.memory:
                walk.memory["v"][:] = 0.0  # the speed gained with larger steps would carry x away again
            if scale < SMALLEST:
                run.stall()
                return
        else:
            value, gradient = new_value, new_gradient
            walk.scale *= GROWTH if adaptive else 1.0
        reached = walk.mean if plan.average else walk.x
        run.advance(reached.copy(), value, gradient, step=eta, state=partial(_state, walk, epoch, plan))


def _one_epoch(objective: Objective, walk: Walk, plan: Plan, epoch: int, z: Array, gradient_at_z: Array) -> float:
    """All moves of an epoch, in place; gives the last step."""
    move = RULES[plan.rule].move
    eta = plan.step * walk.scale
    with np.errstate(over="ignore", invalid="ignore"):
        for estimate in objective.minibatches(plan.batch_size, epoch, plan.seed):
            walk.t += 1
            g = estimate(walk.x)[1]
            if plan.variance_reduction:
                g = g - estimate(z)[1] + gradient_at_z
            eta = scheduled(plan.schedule, plan.step * walk.scale, plan.offset, walk.t)
            walk.x += move(walk.memory, g, eta, walk.t)
            if plan.average:
                # Weights of iterate s proportional to s^3 or so: the start is forgotten, the noise averages out.
                walk.mean += (4.0 / (walk.t + 3.0)) * (walk.x - walk.mean)
    return eta


def _better(new_value: float, new_gradient: Array, value: float, gradient: Array) -> bool:
    """A lower objective; at the level of its rounding, a smaller gradient."""
    if not math.isfinite(new_value):
        return False
    rounding = 1e-14 * abs(value)
    if abs(new_value - value) <= rounding:
        return bool(new_gradient @ new_gradient < gradient @ gradient)
    return new_value < value


def _fitted_step(run: Run, rule: str) -> float:
    """1 / L from gradient differences: a few power iterations along which the largest curvature comes to the fore."""
    d, L = run.gradient, 0.0
    length = 1e-4 * max(1.0, float(np.linalg.norm(run.x)))
    for _ in range(5):
        norm = float(np.linalg.norm(d))
        if norm == 0:
            break
        shifted = run.objective.value_and_gradient(run.x + (length / norm) * d)[1]
        d = (shifted - run.gradient) / length
        L = max(L, float(np.linalg.norm(d)))
    step = 1.0 / L if L > 0 else 1.0
    return step * (1 - GAMMA) if rule == "momentum" else step


def _first_walk(run: Run, plan: Plan) -> Walk:
    saved, names = run.saved, RULES[plan.rule].memory
    if not saved:
        memory = {name: np.zeros(run.x.shape) for name in names}
        return Walk(run.x.copy(), memory, 0, 1.0, run.x.copy())
    memory = {name: np.array(saved[f"memory_{name}"], dtype=np.float64) for name in names}
    walk_x = np.array(saved["walk_x"], dtype=np.float64)
    return Walk(walk_x, memory, int(saved["t"]), float(saved["scale"]), np.array(saved["mean"], dtype=np.float64))


def _state(walk: Walk, epoch: int, plan: Plan) -> State:
    memory = {f"memory_{name}": array.copy() for name, array in walk.memory.items()}
    return {
        "epoch": epoch,
        "t": walk.t,
        "scale": walk.scale,
        "eta": plan.step,
        "walk_x": walk.x.copy(),
        "mean": walk.mean.copy(),
        **memory,
    }
