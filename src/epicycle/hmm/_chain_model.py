r"""Baum and Welch's steps: hidden Markov models as models with latent variables.

E: posteriors of states and expected counts of moves, by forward-backward. M: start and transition probabilities in
proportion to the counts, emissions by their own maximum likelihood with rows weighted by the posteriors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.em import Expectation, LatentModel
from epicycle.engine._ordered import in_order
from epicycle.hmm._emissions import Emission, Parameters, log_dirichlet, share
from epicycle.hmm._sequences import Sequences
from epicycle.stats._markov import Smoothed, smooth

#: Rows whose densities are computed at once: what belongs to them stays in the cache.
_BLOCK = 4096


class ChainModel(LatentModel):
    """Chain and emissions; parameters are `startprob`, `transmat` and those of the emission."""

    def __init__(self, emission: Emission, startprob_prior: float = 1.0, transmat_prior: float = 1.0) -> None:
        self.emission = emission
        self.startprob_prior, self.transmat_prior = startprob_prior, transmat_prior

    def log_densities(self, X: np.ndarray, parameters: Parameters, n_jobs: int | None) -> tuple[np.ndarray, list[Any]]:
        """(log p(x_t | state) of all rows, what the emission keeps for each block)."""
        out = np.empty((len(X), self.emission.n_states))
        kept: list[Any] = []

        def work(block: slice) -> Any:
            return self.emission.log_density(X[block], parameters, out[block])

        in_order(_blocks(len(X)), work, kept.append, self._threads(X, n_jobs))
        return out, kept

    def expectation(self, data: Any, parameters: Parameters, n_jobs: int | None = None) -> Expectation:
        """The E-step over all sequences."""
        sequences: Sequences = data
        X = sequences.X
        log_e, kept = self.log_densities(X, parameters, n_jobs)
        found = self.smoothed(sequences, log_e, parameters, n_jobs)
        require_possible(found.log_likelihood)
        posterior, row_weight = found.posterior, sequences.row_weight
        if row_weight is not None:
            posterior *= row_weight[:, None]
        total: list[Any] = []

        def work(numbered: tuple[int, slice]) -> tuple[Any, ...]:
            number, block = numbered
            return self.emission.statistics(X[block], posterior[block], kept[number], parameters)

        def add(part: tuple[Any, ...]) -> None:
            total[:] = [a + b for a, b in zip(total, part, strict=True)] if total else part

        in_order(enumerate(_blocks(len(X))), work, add, self._threads(X, n_jobs))
        weight = sequences.weight
        value = found.log_likelihood.sum() if weight is None else weight @ found.log_likelihood
        return Expectation(float(value), (found.start, found.transition, tuple(total)), sequences.total_weight)

    def e_step(self, batch: Any, parameters: Parameters) -> tuple[Any, ...]:
        """The rows of a batch as one sequence."""
        sequence = Sequences(np.ascontiguousarray(batch.X, dtype=np.float64), np.array([0, len(batch.X)]))
        found = self.expectation(sequence, parameters, 1)
        return (found.log_likelihood, *found.statistics)

    def smoothed(
        self,
        sequences: Sequences,
        log_e: np.ndarray,
        parameters: Parameters,
        n_jobs: int | None,
        *,
        posteriors: bool = True,
        by_step: bool = False,
    ) -> Smoothed:
        """Posteriors, counts and likelihoods of sequences with these log-densities."""
        return smooth(
            parameters["startprob"],
            parameters["transmat"],
            log_e,
            sequences.offsets,
            sequences.weight,
            posteriors=posteriors,
            by_step=by_step,
            n_jobs=n_jobs,
        )

    def m_step(self, statistics: tuple[Any, ...], parameters: Parameters) -> dict[str, np.ndarray]:
        """The parameters that maximise the expected log-likelihood, with the priors."""
        first, counts, emitted = statistics
        return {
            "startprob": share(first, self.startprob_prior, parameters["startprob"]),
            "transmat": share(counts, self.transmat_prior, parameters["transmat"]),
            **self.emission.m_step(emitted, parameters),
        }

    def log_prior(self, parameters: Parameters) -> float:
        """Of start, moves and emissions."""
        return (
            log_dirichlet(parameters["startprob"], self.startprob_prior)
            + log_dirichlet(parameters["transmat"], self.transmat_prior)
            + self.emission.log_prior(parameters)
        )

    def feasible(self, parameters: Mapping[str, np.ndarray]) -> bool:
        """Whether extrapolated parameters are probabilities and distributions."""
        chain = parameters["startprob"], parameters["transmat"]
        own = {name: parameters[name] for name in self.emission.names}
        return all((p >= 0).all() for p in chain) and self.emission.feasible(own)

    def _threads(self, X: np.ndarray, n_jobs: int | None) -> int:
        return n_threads(4.0 * X.size * self.emission.n_states, n_jobs)


def _blocks(n: int) -> list[slice]:
    return [slice(a, min(a + _BLOCK, n)) for a in range(0, n, _BLOCK)]


def require_possible(log_likelihood: np.ndarray) -> None:
    """Refuse sequences that the model cannot produce."""
    never = np.flatnonzero(log_likelihood == -np.inf)
    if len(never):
        raise DataError(
            f"X: sequence {never[0]} has probability zero under the model (a start or a move of probability zero, a "
            "category or count that no state emits, or rows so far away that their density is zero in floating point)"
        )
