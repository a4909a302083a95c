"""Kernels: temporal differences and Monte Carlo over numbered states and actions."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Numbers = tuple[float, float, float, float]

class TableWorld:
    def __init__(
        self,
        states: int,
        actions: int,
        row: Array,
        next: Array,
        p: Array,
        reward: Array,
        ends: Array,
        start: Array,
        max_steps: int,
    ) -> None: ...

class PythonWorld:
    def __init__(
        self,
        reset: Callable[[], int],
        step: Callable[[int], tuple[int, float, bool, bool]],
        states: int,
        actions: int,
    ) -> None: ...

class TransitionModel:
    def __init__(self, states: int, actions: int) -> None: ...
    def see(self, pair: Array, next: Array, ended: Array, count: Array, reward: Array) -> None: ...
    def outcomes(self) -> tuple[Array, Array, Array, Array, Array]: ...

class Learner:
    def __init__(
        self,
        *,
        q: Array,
        second: Array,
        visits: Array,
        allowed: Array,
        policy: Array | None,
        discount: float,
        target: int,
        exploration: int,
        rate: Numbers,
        explore: Numbers,
    ) -> None: ...

class Position:
    def __init__(self, whole: Array, real: Array) -> None: ...

class Traces:
    def __init__(
        self,
        *,
        ring_key: Array,
        ring_reward: Array,
        trace: Array,
        active: Array,
        decay: float,
        kind: int,
        offline: bool,
    ) -> None: ...

def temporal_difference(
    world: Any, learner: Learner, position: Position, traces: Traces, steps: int, last: bool, rows: Array
) -> tuple[int, int]: ...
def monte_carlo(
    world: Any,
    learner: Learner,
    position: Position,
    first_visit: bool,
    off_policy: bool,
    steps: int,
    most: int,
    rows: Array,
) -> tuple[int, int]: ...
def plan(
    world: Any,
    learner: Learner,
    position: Position,
    model: TransitionModel,
    priority: Array,
    n_updates: Array,
    updates: int,
    threshold: float,
    steps: int,
    rows: Array,
) -> tuple[int, int]: ...
