"""Minimising in the coordinates of the objective's metric.

With M = L L' close to the curvature of F, put x = x0 + L^-T u. In u the curvature is L^-1 F'' L^-T, close to the
identity, so that first-order solvers need few iterations however badly the columns are scaled or correlated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._history import History
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.optim._objective import Objective
from epicycle.optim.solvers._run import State, check_point, solver_like

Array = np.ndarray


class Whitened(Objective):
    """F as a function of u, where x = origin + L^-T u."""

    def __init__(self, objective: Objective, origin: Array) -> None:
        self._inner = objective
        self._origin = origin
        self._metric = objective.metric()
        self.size = objective.size
        self.capabilities = objective.capabilities & {"minibatches", "hessian_product"}
        self.quadratic = objective.quadratic
        self._last: tuple[Array, Array] | None = None

    def original(self, u: Array) -> Array:
        """The parameters x that belong to u."""
        return np.asarray(self._origin + self._metric.half_solve_t(u))

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        value, gradient = self._inner.value_and_gradient(self.original(u))
        self._last = (u, gradient)
        return value, self._metric.half_solve(gradient)

    def value(self, u: Array) -> float:
        return self._inner.value(self.original(u))

    def hessian_product(self, u: Array) -> Callable[[Array], Array]:
        product = self._inner.hessian_product(self.original(u))
        return lambda v: self._metric.half_solve(product(self._metric.half_solve_t(v)))

    def minibatches(self, batch_size: int, epoch: int, seed: int) -> Iterator[Callable[[Array], tuple[float, Array]]]:
        for estimate in self._inner.minibatches(batch_size, epoch, seed):
            yield lambda u, estimate=estimate: self._estimate(estimate, u)  # type: ignore[misc]

    def _estimate(self, estimate: Callable[[Array], tuple[float, Array]], u: Array) -> tuple[float, Array]:
        value, gradient = estimate(self.original(u))
        return value, self._metric.half_solve(gradient)

    def certify(self, u: Array, tol: float, value: float | None = None, gradient: Array | None = None) -> Certificate:
        x = self.original(u)
        if value is not None and self._last is not None and np.array_equal(self._last[0], u):
            return self._inner.certify(x, tol, value, self._last[1])
        return self._inner.certify(x, tol)


class _Translator(Monitor):
    """Shows the caller's monitor the original parameters."""

    def __init__(self, monitor: Monitor, whitened: Whitened, origin: Array) -> None:
        self._monitor = monitor
        self._whitened = whitened
        self._origin = origin

    def __call__(
        self,
        iteration: int,
        x: Array,
        *,
        objective: float,
        state: Callable[[], Mapping[str, Any]] | None = None,
        **columns: float,
    ) -> bool:
        whitened_state = None if state is None else lambda: _marked(state(), self._origin)
        return self._monitor(
            iteration, self._whitened.original(x), objective=objective, state=whitened_state, **columns
        )

    def history(self) -> History:
        return self._monitor.history()


def preconditioned(*, default: bool | None = False) -> Callable[[Callable[..., Solution]], Callable[..., Solution]]:
    """Decorate a solver: it gets the option `precondition`; None stands for objectives that have a metric."""

    def decorate(solver: Callable[..., Solution]) -> Callable[..., Solution]:
        def minimise(
            objective: Objective, start: Array, *, precondition: bool | None = default, **given: Any
        ) -> Solution:
            if precondition is None:
                precondition = "metric" in objective.capabilities
            return (partial(_in_metric, solver) if precondition else solver)(objective, start, **given)

        option = inspect.signature(minimise).parameters["precondition"]
        return solver_like(solver, minimise, [*inspect.signature(solver).parameters.values(), option])

    return decorate


def _in_metric(
    solver: Callable[..., Solution],
    objective: Objective,
    start: Array,
    *,
    monitor: Monitor | None = None,
    state: State | None = None,
    **given: Any,
) -> Solution:
    """Run `solver` in the whitened coordinates and give its solution in the original ones."""
    if "metric" not in objective.capabilities:
        raise ParameterError(f"precondition=True needs an objective with a metric; {type(objective).__name__} has none")
    origin = check_point(state["origin"] if state and "origin" in state else start, objective.size)
    whitened = Whitened(objective, origin)
    translator = _Translator(Monitor() if monitor is None else monitor, whitened, origin)
    solution = solver(whitened, np.zeros(origin.shape), monitor=translator, state=_unmarked(state), **given)
    resumable = _marked(solution.state, origin) if solution.state else {}
    return replace(solution, x=whitened.original(solution.x), state=resumable)


#: Added to the name of the solver in a state, so that u is never taken for x.
_MARK = " in metric"


def _marked(state: State, origin: Array) -> State:
    return {**state, "solver": state["solver"] + _MARK, "origin": origin}


def _unmarked(state: State | None) -> State | None:
    if not state:
        return state
    solver = str(state.get("solver"))
    return {**state, "solver": solver.removesuffix(_MARK) if solver.endswith(_MARK) else f"{solver}, not{_MARK}"}
