"""Kernels: sweeps over the states of a Markov decision process, beliefs, filters."""

from typing import Any

import numpy as np

Array = np.ndarray

def improve(
    P: Any, reward: Array, first: Array, discount: float, values: Array, out: Array, choice: Array, threads: int
) -> tuple[float, float]: ...
def iterate(
    P: Any,
    reward: Array,
    first: Array,
    discount: float,
    values: Array,
    choice: Array,
    sweeps: int,
    relax: float,
    stop: float,
    ends: bool,
    threads: int,
) -> Array: ...
def improve_in_place(
    P: Any, reward: Array, first: Array, discount: float, values: Array, choice: Array
) -> tuple[float, float]: ...
def evaluate(
    P: Any,
    reward: Array,
    first: Array,
    discount: float,
    choice: Array,
    values: Array,
    sweeps: int,
    threads: int,
    stop: float = ...,
    ends: bool = ...,
) -> tuple[float, float]: ...
def sweep_by_priority(
    P: Any,
    reward: Array,
    first: Array,
    discount: float,
    leads: Any,
    owner: Array,
    values: Array,
    tolerance: float,
    limit: int,
) -> int: ...

class StateSpace:
    def __init__(self, A: Array, C: Array, W: Array, V: Array, a: Array, c: Array, mean: Array, cov: Array) -> None: ...

def kalman_filter(
    y: Array, model: StateSpace, store: int, form: int
) -> tuple[float, Array, Array, Array, Array, Array]: ...
def kalman_smoother(
    y: Array, model: StateSpace, predicted_mean: Array, predicted_cov: Array, filtered_cov: Array, lagged: bool
) -> None: ...
def belief_backup(
    P: Any, reward: Array, observation: Array, discount: float, vectors: Array, beliefs: Array, threads: int
) -> tuple[Array, Array, Array]: ...
def belief_upper_backup(
    P: Any,
    reward: Array,
    observation: Array,
    discount: float,
    corner: Array,
    vectors: Array,
    points: Array,
    values: Array,
    beliefs: Array,
    threads: int,
) -> Array: ...
def belief_upper(corner: Array, vectors: Array, points: Array, values: Array, beliefs: Array) -> Array: ...
def informed_bound(
    P: Any,
    reward: Array,
    observation: Array,
    discount: float,
    vectors: Array,
    sweeps: int,
    stop: float,
    threads: int,
) -> Array: ...

class SearchLimits:
    def __init__(
        self, *, tolerance: float, floor: float, share: float, trials: int, depth: int, seconds: float
    ) -> None: ...

def belief_search(
    P: Any,
    reward: Array,
    observation: Array,
    discount: float,
    start: Array,
    low: Array,
    low_actions: Array,
    corner: Array,
    high: Array,
    limits: SearchLimits,
) -> tuple[Array, Array, Array, Array, Array, Array]: ...
def prune_vectors(vectors: Array, tolerance: float) -> Array: ...
def largest_excess(vectors: Array, others: Array) -> float: ...
def incremental_pruning(
    P: Any, reward: Array, observation: Array, discount: float, vectors: Array, tolerance: float, most: int
) -> tuple[Array, Array]: ...
def motion(system: int, parameters: Array, x: Array, u: Array) -> Array: ...
def expand(
    system: int, parameters: Array, seconds: float, integrator: int, x: Array, u: Array, second: bool
) -> tuple[Array, Array, Array]: ...

class Controls:
    def __init__(
        self, *, given: Array | None, gain: Array | None, offset: Array | None, lowest: Array, highest: Array
    ) -> None: ...

class Box:
    def __init__(self, low: Array | None, high: Array | None) -> None: ...

class Trajectories:
    def __init__(self, states: Array | None, controls: Array | None, rewards: Array | None) -> None: ...

def rollout(
    system: int,
    parameters: Array,
    seconds: float,
    integrator: int,
    start: Array,
    steps: int,
    controls: Controls,
    box: Box,
    paths: Trajectories,
    threads: int,
) -> tuple[Array, Array]: ...
