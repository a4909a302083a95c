"""Kernels: sweeps over the states of a Markov decision process."""

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
    threads: int,
) -> Array: ...
def improve_in_place(
    P: Any, reward: Array, first: Array, discount: float, values: Array, choice: Array
) -> tuple[float, float]: ...
def evaluate(
    P: Any, reward: Array, first: Array, discount: float, choice: Array, values: Array, sweeps: int, threads: int
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
def kalman_filter(
    y: Array, A: Array, C: Array, W: Array, V: Array, a: Array, c: Array, mean: Array, cov: Array, store: bool
) -> tuple[float, Array, Array, Array, Array, Array]: ...
def kalman_smoother(
    y: Array,
    A: Array,
    C: Array,
    W: Array,
    V: Array,
    a: Array,
    c: Array,
    mean: Array,
    cov: Array,
    predicted_mean: Array,
    predicted_cov: Array,
    filtered_cov: Array,
    lagged: bool,
) -> tuple[Array, Array, Array]: ...
