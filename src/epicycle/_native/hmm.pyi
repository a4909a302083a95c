"""Kernels: hidden Markov chains, posteriors, most probable paths, densities of states."""

import numpy as np

Array = np.ndarray

def diagonal_scores(X: Array, mean: Array, variance: Array, out: Array) -> None: ...
def diagonal_moments(X: Array, weight: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]: ...
def smooth(
    start: Array,
    transition: Array,
    log_density: Array,
    offsets: Array,
    weight: Array | None,
    posteriors: bool,
    by_step: bool,
    threads: int,
) -> tuple[Array, Array, Array, Array, Array]: ...
def viterbi(
    start: Array, transition: Array, log_density: Array, offsets: Array, threads: int
) -> tuple[Array, Array]: ...
