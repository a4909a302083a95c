"""Variational fits: rounds over all documents, and steps on mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import psi

from epicycle.core._monitor import Monitor
from epicycle.data import Batch, Data
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.topics._inference import Effort, Topics, ascend, expected_topics
from epicycle.decomposition.topics._priors import newton
from epicycle.engine._row_order import batches_in_order

#: Rounds in which documents begin again with equal shares, as long as the bound rises with that. After a few steps
#: their shares are less decided than if they had gone on, and fits end in better optima.
_UNDECIDED = 15
_BEFORE_PRIORS = 5  # rounds before priors are learnt: from a random start they would only learn that it is random


@dataclass
class State:
    """lambda (p, k), the priors, and how far the fit has come."""

    lam: np.ndarray
    alpha: np.ndarray
    eta: float
    round: int = 0
    value: float = -np.inf
    moved: float = np.inf
    afresh: bool = True  # documents begin again in every round


@dataclass(frozen=True)
class Plan:
    """Length of a fit, and what it learns."""

    tol: float
    rounds: int
    effort: Effort
    learn_alpha: bool
    learn_eta: bool
    perp_tol: float
    evaluate_every: int
    n_jobs: int | None


def moved_share(new: np.ndarray, old: np.ndarray) -> float:
    """The share of all that the topics hold that has moved."""
    return float(np.abs(new - old).sum() / new.sum())


def _round(batch: Batch, gamma: np.ndarray, topics: Topics, effort: Effort, afresh: bool) -> tuple[Any, ...]:
    if afresh:
        gamma[:] = 0.0
    return ascend(batch, gamma, topics, effort, sums=True)


def climb(
    rows: RowFactors,
    s: State,
    plan: Plan,
    extent: tuple[float, float],
    monitor: Monitor,
    keep: Callable[[], Mapping[str, Any]] | None,
) -> str:
    """Rounds over all documents, of this weight and these words in all; the bound never falls. Returns the reason."""
    weight, words = extent
    p, k = s.lam.shape
    last = np.inf
    while s.round < plan.rounds:
        topics, part = expected_topics(s.lam, s.alpha, s.eta, plan.n_jobs)
        before = rows.kept() if s.afresh and s.round else None
        sums, logs, documents = rows.step(_round, topics, plan.effort, s.afresh)
        if before is not None and float(documents) + part < s.value:
            rows.restore(before)
            s.afresh = False
            sums, logs, documents = rows.step(_round, topics, plan.effort, False)
        s.value = float(documents) + part
        new = s.eta + (sums * topics.b)[:, :k]
        s.moved = moved_share(new, s.lam)
        s.lam[:] = new
        s.round += 1
        if s.round >= _BEFORE_PRIORS:
            if plan.learn_alpha:
                s.alpha = newton(s.alpha, weight, logs)
            if plan.learn_eta:
                total = float(np.sum(psi(s.lam)) - p * np.sum(psi(s.lam.sum(axis=0))))
                s.eta = float(newton(np.array([s.eta]), float(k), np.array([total]), float(p))[0])
        ends = s.moved <= plan.tol and not s.afresh
        s.afresh = s.afresh and s.round < _UNDECIDED and s.moved > plan.tol
        perplexity = perplexity_of(s.value, words)
        state = None if keep is None else lambda: {**keep(), "round": s.round}
        stop = monitor(s.round, s.lam.ravel(), objective=-s.value, state=state, perplexity=perplexity, moved=s.moved)
        if stop:
            return "stopped"
        if ends:
            return "converged"
        if plan.evaluate_every > 0 and s.round % plan.evaluate_every == 0:
            if abs(last - perplexity) < plan.perp_tol:
                return "converged"
            last = perplexity
    return "max_iter"


def perplexity_of(bound: float, words: float) -> float:
    """exp(-bound / words); 1 where there are no words."""
    return float(np.exp(min(-bound / words, 700.0))) if words > 0 else 1.0


def slices(data: Data, size: int) -> Iterator[Batch]:
    """All rows in their order, in batches of this size; files and partitions end theirs."""
    for part in batches_in_order(data):
        for i in range(0, part.n_rows, size):
            rows = slice(i, min(i + size, part.n_rows))
            weight = None if part.weight is None else part.weight[rows]
            yield Batch(part.X[rows], None, weight, part.start + i)


def step(batch: Batch, s: State, ratio: float, rate: float, effort: Effort, n_jobs: int | None) -> float:
    """lambda moves by `rate` towards what the batch, taken `ratio` times, makes of it. Returns the bound before."""
    k = s.lam.shape[1]
    topics, part = expected_topics(s.lam, s.alpha, s.eta, n_jobs)
    gamma = np.zeros((batch.n_rows, k))
    sums, _, documents = ascend(batch, gamma, topics, effort.shared(batch.X, k, n_jobs), sums=True)
    s.lam *= 1 - rate
    s.lam += rate * (s.eta + ratio * (sums * topics.b)[:, :k])
    return ratio * documents + part
