"""Diagnosis of a learnt controller: is it the simulator, the learning algorithm, or the objective?

The controller theta was learnt by minimising J in a simulator, and does worse in reality than a reference (a person, an
older controller). If the simulator is right, if the algorithm minimises J, and if a small J means good control, it
would do well. So one of the three is wrong:

1. theta does well in simulation but not in reality: the simulator.
2. Otherwise, J(reference) < J(theta) in simulation: the algorithm did not minimise J.
3. Otherwise theta has the smaller J and yet is worse: J is the wrong objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.control.simulators._rollout import follow
from epicycle.control.simulators._simulator import Simulator
from epicycle.core._checks import count
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, short, styled
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.report._finding import Finding

Array = np.ndarray
_SIGNIFICANT = 1.96  # standard errors of a mean difference, two-sided at 5 %


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ControllerDiagnosis(Finding):
    """Cause of the shortfall of a learnt controller.

    Attributes
    ----------
    kind : {"simulator", "algorithm", "objective", "neither"}
    performance : dict
        Performance of each start, larger is better, by controller and place: ``performance["learnt", "reality"]``.
    objective : dict
        Objective of each start in simulation, smaller is better, by controller.
    names : tuple of two str
        Names of the learnt controller and of the reference.
    """

    kind: str
    performance: dict[tuple[str, str], Array]
    objective: dict[str, Array]
    names: tuple[str, str]

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the performance of both controllers in simulation and in reality, with two standard errors."""
        ax = axes_of(ax)
        rows = [(who, place) for who in ("reference", "learnt") for place in ("reality", "simulation")]
        called = dict(zip(("learnt", "reference"), self.names, strict=True))
        labels = []
        for y, (who, place) in enumerate(rows):
            values = self.performance[who, place]
            colour, filled = COLOURS["blue" if who == "learnt" else "vermilion"], place == "reality"
            error = 2 * _standard_error(values)
            style = {"fmt": "o", "color": colour, "mfc": colour if filled else "white", "capsize": 3}
            ax.errorbar(values.mean(), y, xerr=error if np.isfinite(error) else None, **style)
            cost = f"\nJ = {self.objective[who].mean():.4g}" if place == "simulation" else ""
            labels.append(f"{short(called[who], 24)}, {place}{cost}")
        ax.set_yticks(range(len(rows)), labels)
        ax.set_ylim(-0.5, len(rows) - 0.5)
        titles = {"algorithm": "the learning algorithm", "neither": "nothing to explain"}
        ax.set(xlabel="performance (larger is better)", title=titles.get(self.kind, f"the {self.kind}"))
        return ax


@in_catalogue("diagnose", "G14", certificate="none")
def controller(
    learnt: Any,
    reference: Any,
    *,
    simulator: Any,
    system: Any,
    objective: Any,
    performance: Callable[[Array, Array], float],
    starts: Any,
    n_steps: int,
    names: tuple[str, str] = ("learnt controller", "reference"),
) -> ControllerDiagnosis:
    r"""Find out why a learnt controller does worse than a reference: simulator, learning algorithm, or objective.

    Both controllers run in the simulator and in reality from the same starts. If the learnt one is worse in reality,

    .. math::

       \text{more than half of its shortfall is gone in simulation} &: \text{the simulator is wrong} \\
       \text{otherwise, } J(\text{reference}) < J(\text{learnt}) &: \text{the algorithm did not minimise J} \\
       \text{otherwise} &: \text{J is the wrong objective,}

    with J in simulation, where it was to be minimised. Differences are taken start by start, and count if they exceed
    1.96 standard errors.

    Parameters
    ----------
    learnt : policy
        The controller to diagnose: linear feedback such as ``LQRSolution``, an object with ``control(X, time=t)``, or a
        function of states.
    reference : policy
        One that does well: a person's, or an older one.
    simulator : Simulator, object with a method step, or callable
        The model in which J was minimised, ``step(x, u)``.
    system : Simulator, object with a method step, or callable
        Reality, or a better model of it.
    objective : callable, or object with a method total
        ``objective(states, controls)`` of one trajectory, (T + 1, n) and (T, m): the J that was to be minimised.
    performance : callable
        ``performance(states, controls)`` of one trajectory: what matters in the end, larger is better.
    starts : array (rows, n)
        Starting states, at least two.
    n_steps : int
        Number of steps of a trajectory.
    names : tuple of two str
        Names of the two controllers.

    Examples
    --------
    A regulator was computed for a pole that is much shorter than the real one:

    >>> import numpy as np
    >>> from epicycle import diagnose
    >>> from epicycle.control import LQR, CartPole, QuadraticCost
    >>> real, wrong = CartPole(half_length=2.0), CartPole(half_length=0.1)
    >>> def regulator(cart):
    ...     _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    ...     return LQR(A, B, np.eye(4), [[0.1]]).solve()
    >>> found = diagnose.controller(
    ...     regulator(wrong), regulator(real), simulator=wrong, system=real,
    ...     objective=QuadraticCost(np.eye(4), [[0.1]]), performance=lambda x, u: np.mean(np.abs(x[:, 2]) < 0.2),
    ...     starts=real.reset(10, random_state=0), n_steps=400)
    >>> found.kind
    'simulator'
    """
    X = _starts(starts)
    steps = count("n_steps", n_steps, low=1)
    J = objective.total if hasattr(objective, "total") else objective
    for name, function in (("objective", J), ("performance", performance)):
        if not callable(function):
            raise ParameterTypeError(f"{name}={function!r:.60}; expected a function of states and controls")
    scores: dict[tuple[str, str], Array] = {}
    costs: dict[str, Array] = {}
    for who, policy in (("learnt", learnt), ("reference", reference)):
        for place, model in (("simulation", simulator), ("reality", system)):
            paths = _trajectories(model, policy, X, steps, place)
            scores[who, place] = _values("performance", performance, paths)
            if place == "simulation":
                costs[who] = _values("objective", J, paths)
    return _result(scores, costs, names)


def _starts(starts: Any) -> Array:
    X = np.asarray(starts, dtype=np.float64)
    if X.ndim != 2 or len(X) < 2 or not np.isfinite(X).all():
        raise ParameterError(f"starts: got shape {X.shape}; expected at least two states (rows, n) of finite numbers")
    return X


def _trajectories(model: Any, policy: Any, X: Array, steps: int, place: str) -> list[tuple[Array, Array]]:
    """States and controls from each start; those of a policy with a memory one start after the other."""
    name = "simulator" if place == "simulation" else "system"
    if not (hasattr(model, "step") or callable(model)):
        raise ParameterTypeError(f"{name}={model!r:.60}; expected an object with a method step, or a function")
    if hasattr(policy, "reset"):
        return [path for x in X for path in _together(model, policy.reset(), x[None], steps)]
    return _together(model, policy, X, steps)


def _together(model: Any, policy: Any, X: Array, steps: int) -> list[tuple[Array, Array]]:
    if isinstance(model, Simulator):
        run = model.rollout(X, policy=policy, n_steps=steps, stop=False)
        return list(zip(run.states, run.controls, strict=True))
    step = model.step if hasattr(model, "step") else model

    def one_by_one(now: Array, u: Array) -> Array:
        return np.array([step(x, v) for x, v in zip(now, u, strict=True)], dtype=np.float64)

    states, controls = follow(one_by_one, policy, X, steps)
    return list(zip(states, controls, strict=True))


def _values(name: str, function: Callable[..., Any], paths: list[tuple[Array, Array]]) -> Array:
    out = np.array([float(function(x, u)) for x, u in paths])
    if not np.isfinite(out).all():
        raise ParameterError(f"{name}: gave {out[~np.isfinite(out)][0]}; expected finite numbers")
    return out


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _result(
    scores: dict[tuple[str, str], Array], costs: dict[str, Array], names: tuple[str, str]
) -> ControllerDiagnosis:
    a, b = names
    short_in_reality = scores["reference", "reality"] - scores["learnt", "reality"]
    short_in_simulation = scores["reference", "reality"] - scores["learnt", "simulation"]
    excess = costs["learnt"] - costs["reference"]
    worse = short_in_reality.mean() > _SIGNIFICANT * _standard_error(short_in_reality)
    gap = short_in_reality / 2 - short_in_simulation  # positive where more than half of the shortfall is gone
    found = f"{b} reaches {scores['reference', 'reality'].mean():.4g} in reality, {a} "
    found += f"{scores['learnt', 'reality'].mean():.4g}"
    steps: tuple[str, ...] = ()
    in_simulation = f"{scores['learnt', 'simulation'].mean():.4g} in simulation"
    if not worse or short_in_reality.mean() <= 0:
        kind = "neither"
        verdict = f"There is nothing to explain: {found}, which is not significantly worse."
    elif gap.mean() > 0:
        kind = "simulator"
        verdict = f"The simulator is the cause: {found}, but {in_simulation}, where it was learnt."
        steps = (
            "learn the dynamics from trajectories of the real system (LinearDynamics, FeatureDynamics)",
            "vary the parameters of the simulator while learning, and add the noise of reality",
        )
    elif excess.mean() > _SIGNIFICANT * _standard_error(excess):
        kind = "algorithm"
        verdict = (
            f"The learning algorithm is the cause: {found} and {in_simulation}, and the objective in simulation is "
            f"{costs['learnt'].mean():.6g}, more than the {costs['reference'].mean():.6g} of {b}: it was not minimised."
        )
        steps = (
            "let the optimiser run longer, or from other starts",
            f"start from {b}",
            "use a richer class of policies",
        )
    else:
        kind = "objective"
        verdict = (
            f"The objective is the cause: {found} and {in_simulation}, although the objective in simulation is "
            f"{costs['learnt'].mean():.6g}, no more than the {costs['reference'].mean():.6g} of {b}. Minimising it "
            "better would not help."
        )
        steps = ("change the objective so that it prefers what performs well", "weigh what goes wrong in reality more")
    return ControllerDiagnosis(
        verdict=verdict,
        columns={
            "controller": [a, b],
            "performance in reality": [scores[who, "reality"].mean() for who in ("learnt", "reference")],
            "performance in simulation": [scores[who, "simulation"].mean() for who in ("learnt", "reference")],
            "objective in simulation": [costs[who].mean() for who in ("learnt", "reference")],
        },
        next_steps=steps,
        notes=_notes(kind, gap, excess),
        kind=kind,
        performance=scores,
        objective=costs,
        names=names,
    )


def _notes(kind: str, gap: Array, excess: Array) -> tuple[str, ...]:
    """Doubts about the verdict."""
    notes = []
    if kind != "neither" and abs(gap.mean()) <= _SIGNIFICANT * _standard_error(gap):
        notes.append("whether more than half of the shortfall is gone in simulation is within chance: take more starts")
    if kind == "objective" and excess.mean() > 0:
        notes.append("the objective of the learnt controller is larger, but not significantly: take more starts")
    return tuple(notes)
