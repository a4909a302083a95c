"""Gibbs sampling: a topic for every word of every document, drawn again and again.

The sampler is exact for any number of threads (native/decomposition/topic_sampler.hpp): words lie in parts, and the
mass of each part in each topic is drawn once in a sweep, m_k ~ Dirichlet(p_j eta + n_kj). The second half of the sweeps
is kept: lambda = eta + the mean of the counts of words in topics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._monitor import Monitor
from epicycle.core._random import stream
from epicycle.core._threads import n_threads
from epicycle.data import Batch
from epicycle.decomposition.topics._inference import rows_of
from epicycle.decomposition.topics._priors import fixed_point, symmetric_fixed_point

INTERVAL = 10  # sweeps between two that are kept, and between two updates of learnt priors
_MOST_TOKENS = 2**31 - 1
_LARGEST_COUNT = 2**24  # counts beyond it are not whole in float32


@dataclass
class Tokens:
    """The words of all documents, one by one, by document and then by part of the vocabulary."""

    words: np.ndarray
    documents: np.ndarray
    segments: np.ndarray
    bounds: np.ndarray
    part: np.ndarray  # of each word of the vocabulary
    n: int
    p: int

    @property
    def parts(self) -> int:
        return len(self.bounds) - 1


def tokens_of(batch: Batch) -> Tokens:
    """Rows of whole counts as tokens; a document of weight v is taken v times."""
    X = rows_of(batch)
    n, p = X.shape
    counts = np.asarray(X.data, dtype=np.float64)
    _require_whole(counts, "X")
    times = np.ones(n) if batch.weight is None else batch.weight
    _require_whole(times, "sample_weight")
    lengths = np.bincount(np.repeat(np.arange(n), np.diff(X.indptr)), counts, minlength=n)
    total, documents = float(lengths @ times), float(times.sum())
    if max(total, documents) > _MOST_TOKENS:
        raise DataError(
            f"X: {total:g} words in {documents:g} documents, each taken as often as its weight says; expected at most "
            f"{_MOST_TOKENS} with learning_method='gibbs'"
        )
    require_memory(60 * total + 200 * documents, "tokens of Gibbs sampling", "use learning_method='batch'")
    if batch.weight is not None:
        X = X[np.repeat(np.arange(n), times.astype(np.int64))]
        counts, n = np.asarray(X.data, dtype=np.float64), X.shape[0]
    frequency = np.bincount(X.indices, counts, minlength=p)
    if frequency.max(initial=0) >= _LARGEST_COUNT:
        raise DataError(
            f"X: a column with a sum of {frequency.max():g}; expected less than {_LARGEST_COUNT} with "
            "learning_method='gibbs'"
        )
    parts = int(np.clip(total // 250_000, 4, 16))  # fixed by the data, not by the threads
    # Words by frequency, dealt to and fro: the parts have about as many tokens each.
    deal = np.concatenate([np.arange(parts), np.arange(parts)[::-1]])
    part = np.empty(p, np.int64)
    part[np.argsort(-frequency, kind="stable")] = deal[np.arange(p) % (2 * parts)]
    whole = counts.astype(np.int64)
    words = np.repeat(X.indices, whole)
    of = np.repeat(np.repeat(np.arange(n), np.diff(X.indptr)), whole)
    key = of * parts + part[words]
    order = np.argsort(key, kind="stable")
    segments = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n * parts))]).astype(np.int64)
    bounds = np.searchsorted(segments[::parts], np.arange(parts + 1) * (len(words) / parts)).astype(np.int64)
    bounds[0], bounds[-1] = 0, n
    return Tokens(words[order].astype(np.int32), of[order], segments, np.maximum.accumulate(bounds), part, n, p)


def _require_whole(values: np.ndarray, name: str) -> None:
    if values.size and not np.array_equal(values, np.floor(values)):
        first = values[values != np.floor(values)][0]
        raise DataError(f"{name}: {first:g}; expected whole numbers with learning_method='gibbs', which counts words")


@dataclass
class Chain:
    """The state of the sampler, and what it has kept."""

    z: np.ndarray
    counts: np.ndarray
    totals: np.ndarray
    alpha: np.ndarray
    eta: float
    sweep: int = 0
    kept: int = 0
    mean: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    traced: list[float] = field(default_factory=list)


def chain_of(tokens: Tokens, k: int, alpha: np.ndarray, eta: float, seed: int, z: np.ndarray | None = None) -> Chain:
    """A chain at these topics of tokens, or at random ones."""
    if z is None:
        z = stream(seed, "topics").integers(k, size=len(tokens.words)).astype(np.int32)
    lanes = _native.decomposition.lanes_of_topics(k)
    cell = tokens.words.astype(np.int64) * lanes + z
    counts = np.bincount(cell, minlength=tokens.p * lanes).astype(np.float32).reshape(tokens.p, lanes)
    totals = np.zeros((tokens.parts, k))
    np.add.at(totals, tokens.part, counts[:, :k])
    return Chain(z, counts, totals, alpha, eta, mean=np.zeros((tokens.p, k)))


def sweep(tokens: Tokens, chain: Chain, seed: int, n_jobs: int | None) -> None:
    """Draw the masses of parts, then the topic of every token."""
    k = len(chain.alpha)
    sizes = np.bincount(tokens.part, minlength=tokens.parts).astype(np.float64)
    chain.sweep += 1
    shapes = chain.totals + sizes[:, None] * chain.eta
    drawn = stream(seed, "masses", chain.sweep).standard_gamma(shapes)
    # Shapes near zero draw zeros; a topic without words and without a draw has the prior mean.
    total = drawn.sum(axis=0)
    masses = np.where(total > 0, drawn / np.where(total > 0, total, 1.0), (sizes / sizes.sum())[:, None])
    alpha = np.zeros(chain.counts.shape[1], np.float32)
    alpha[:k] = chain.alpha
    threads = min(n_threads(float(len(tokens.words) * k), n_jobs), tokens.parts)
    _native.decomposition.draw_tokens(
        _native.decomposition.Tokens(tokens.words, tokens.segments, tokens.bounds, sizes),
        np.ascontiguousarray(masses),
        alpha,
        chain.eta,
        seed % 2**64,
        chain.sweep,
        chain.z,
        chain.counts,
        chain.totals,
        threads,
    )


def counts_of_documents(tokens: Tokens, chain: Chain) -> np.ndarray:
    """Words of each topic in each document, (n, k)."""
    k = len(chain.alpha)
    return np.bincount(tokens.documents * k + chain.z, minlength=tokens.n * k).reshape(tokens.n, k)


def log_joint(tokens: Tokens, chain: Chain, by_document: np.ndarray) -> float:
    """log p(words, topics), with the shares of documents and of words integrated out."""
    a, k, p, eta = chain.alpha, len(chain.alpha), tokens.p, chain.eta
    histogram = np.bincount(chain.counts[:, :k].astype(np.int64).ravel())
    values = np.flatnonzero(histogram)
    of_topics = chain.totals.sum(axis=0)
    words = float(histogram[values] @ (gammaln(values + eta) - gammaln(eta)))
    words += float(np.sum(gammaln(p * eta) - gammaln(of_topics + p * eta)))
    lengths = by_document.sum(axis=1)
    shares = float(np.sum(gammaln(a.sum()) - gammaln(lengths + a.sum())))
    for j in range(k):
        often = np.bincount(by_document[:, j])
        seen = np.flatnonzero(often)
        shares += float(often[seen] @ (gammaln(seen + a[j]) - gammaln(a[j])))
    return words + shares


def split_r_hat(values: np.ndarray) -> float:
    """Disagreement of the two halves of a chain: 1 where they do not (Gelman and others); inf of fewer than 4."""
    half = len(values) // 2
    if half < 2:
        return float("inf")
    pieces = np.array([values[:half], values[-half:]])
    within = float(pieces.var(axis=1, ddof=1).mean())
    between = half * float(pieces.mean(axis=1).var(ddof=1))
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((half - 1) / half + between / within / half))


def run(
    tokens: Tokens,
    chain: Chain,
    sweeps: int,
    learn: tuple[bool, bool],
    seed: int,
    n_jobs: int | None,
    monitor: Monitor,
    state: Callable[[], Mapping[str, Any]],
) -> str:
    """Sweeps until there are as many; every tenth of the second half is kept. Returns the reason of the end."""
    k = len(chain.alpha)
    every = max(1, min(INTERVAL, sweeps // 20))
    while chain.sweep < sweeps:
        sweep(tokens, chain, seed, n_jobs)
        if chain.sweep % every and chain.sweep < sweeps:
            continue
        by_document = counts_of_documents(tokens, chain)
        if chain.sweep <= sweeps // 2:
            if learn[0]:
                often = [np.bincount(by_document[:, j]) for j in range(k)]
                chain.alpha = fixed_point(chain.alpha, often, np.bincount(by_document.sum(axis=1)))
            if learn[1]:
                histogram = np.bincount(chain.counts[:, :k].astype(np.int64).ravel())
                chain.eta = symmetric_fixed_point(chain.eta, histogram, tokens.p, chain.totals.sum(axis=0))
        else:
            chain.mean += chain.counts[:, :k]
            chain.kept += 1
        value = log_joint(tokens, chain, by_document)
        if chain.sweep > sweeps // 2:
            chain.traced.append(value)
        lam = chain.eta + (chain.mean / chain.kept if chain.kept else chain.counts[:, :k].astype(np.float64))
        if monitor(chain.sweep, lam.ravel(), objective=-value, state=state):
            return "stopped"
    return "converged"
