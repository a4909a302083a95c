r"""Hidden Markov chains: from log-densities of observations to states, expected counts and likelihoods.

A chain of K states starts by q and moves by A, q and the rows of A being probabilities; observation t has the density
e_t(k) in state k. Nothing here knows what an observation is, so that a filter of beliefs can use the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.core._threads import n_threads


@dataclass(frozen=True)
class Smoothed:
    """Posterior distribution of the states behind sequences of observations.

    log_likelihood : of every sequence, -inf for one that cannot happen (its posteriors are NaN).
    posterior : P(state at t | the whole sequence), shape (n, K); no rows if it was not asked for.
    by_step : log p(x_t | x_0, ..., x_{t-1} of its sequence), shape (n,); empty if it was not asked for.
    start, transition : expected counts of first states (K,) and of moves (K, K), times the weights of the sequences.
    """

    log_likelihood: np.ndarray
    posterior: np.ndarray
    by_step: np.ndarray
    start: np.ndarray
    transition: np.ndarray


def smooth(
    start: np.ndarray,
    transition: np.ndarray,
    log_density: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    posteriors: bool = True,
    by_step: bool = False,
    n_jobs: int | None = None,
) -> Smoothed:
    """Forward-backward over sequences; sequence s is rows offsets[s] to offsets[s + 1].

    No number underflows, however long a sequence is and however unlikely its states.
    """
    threads = _threads(log_density, n_jobs)
    return Smoothed(*_native.hmm.smooth(start, transition, log_density, offsets, weight, posteriors, by_step, threads))


def most_probable_path(
    start: np.ndarray,
    transition: np.ndarray,
    log_density: np.ndarray,
    offsets: np.ndarray,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Viterbi's algorithm: (log-probability of path and observations for every sequence, state of every row).

    States are -1 in a sequence that cannot happen.
    """
    return _native.hmm.viterbi(start, transition, log_density, offsets, _threads(log_density, n_jobs))


def draw_chain(start: np.ndarray, transition: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """States of one sequence of n steps."""
    u = rng.random(n)
    first, moves = _thresholds(start), _thresholds(transition)
    states = np.empty(n, dtype=np.int64)
    for t in range(n):
        row = first if t == 0 else moves[states[t - 1]]
        states[t] = np.searchsorted(row, u[t], side="right")
    return states


def stationary_distribution(transition: np.ndarray) -> np.ndarray:
    """A distribution that a step leaves as it is: q = q A. Where there are several, the one of least length."""
    k = len(transition)
    system = np.vstack([transition.T - np.eye(k), np.ones((1, k))])
    found = np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0].clip(min=0)
    return np.asarray(found / found.sum())


def _thresholds(p: np.ndarray) -> np.ndarray:
    cumulative = np.cumsum(p, axis=-1)
    cumulative /= cumulative[..., -1:]  # the last is 1 exactly, above every draw
    return cumulative


def _threads(log_density: np.ndarray, n_jobs: int | None) -> int:
    n, k = log_density.shape
    return n_threads(4.0 * n * k * (k + 8), n_jobs)
