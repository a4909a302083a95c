"""Kernels: sums and moments of the rows of each class, the scores of classes, densities and Markov chains over them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray

def class_sums(X: Any, code: Array, weight: Array | None, n_classes: int, threads: int) -> Array: ...
def class_moments(X: Array, code: Array, weight: Array | None, n_classes: int) -> tuple[Array, Array, Array]: ...
def normal_scores(X: Array, mean: Array, precision: Array, log_norm: Array) -> Array: ...

class PythonDensity:
    def __init__(self, function: Callable[[Array], Any], n: int, has_gradient: bool) -> None: ...

class NormalDensity:
    def __init__(self, mean: Array, precision: Array) -> None: ...

class LinearDensity:
    def __init__(
        self,
        gram: Array,
        solution: Array,
        rss: float,
        rows: float,
        prior_mean: Array,
        prior_precision: Array,
        shape: float,
        rate: float,
    ) -> None: ...

class HierarchicalDensity:
    def __init__(self, y: Array, s: Array, mu_mean: float, mu_scale: float, tau_scale: float) -> None: ...

class RegressionDensity:
    def __init__(self, X: Array, y: Array, offset: Array | None, prior_precision: Array) -> None: ...

def polya_gamma(c: Array, seed: Array) -> Array: ...
def logistic_gibbs(
    X: Array,
    kappa: Array,
    repeats: Array,
    precision: Array,
    start: Array,
    seed: Array,
    warmup: int,
    draws: Array,
    progress: Array,
    stop: Array,
) -> None: ...
def log_density(density: Any, u: Array) -> tuple[float, Array]: ...

class ChainOptions:
    def __init__(
        self,
        *,
        sampler: str,
        warmup: int,
        thin: int,
        dense: bool,
        target_accept: float,
        step_size: float,
        max_depth: int,
        integration_time: float,
    ) -> None: ...

def sample_chain(
    density: Any,
    options: ChainOptions,
    start: Array,
    seed: Array,
    draws: Array,
    statistics: Array,
    progress: Array,
    stop: Array,
) -> tuple[float, Array]: ...
