"""Kernels: hidden Markov chains, posteriors, likelihoods, most probable paths."""

import numpy as np

Array = np.ndarray

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
