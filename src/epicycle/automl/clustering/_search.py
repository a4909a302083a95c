"""Candidates of a clustering: how stable and how compact each is, against data without clusters.

The evidence of a candidate is E = mean(A S): the adjusted Rand index A of the clusterings of two subsamples times the
mean silhouette S, as in :func:`epicycle.metrics.cluster_stability`. It is compared with its mean over reference tables
without clusters. For each method the number of clusters with the largest difference is taken, and of the methods the
one with the largest evidence: chance is what numbers of clusters differ in, evidence what methods differ in. Since many
candidates were tried, the test is of the largest difference by chance: the same search on every reference table gives
its distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epicycle.automl._budget import Budget
from epicycle.automl._messages import Messages
from epicycle.automl.clustering._methods import Method
from epicycle.core._exceptions import DataError, EpicycleError
from epicycle.core._random import stream
from epicycle.metrics._cluster_stability import Resampled, resampled, uniform_reference

#: Rows that subsamples are drawn from.
RESAMPLED_ROWS = 500
#: Rows for each cluster that the sample has at least, and that a number of clusters needs to be tried.
_ROWS_OF_A_CLUSTER = 5
_SUBSAMPLE = 0.7
_PAIRS, _REFERENCE_PAIRS, _REFERENCES = 10, 3, 19  # 19 references: p-values down to 0.05
#: Features with at most so many values are shuffled in reference tables; others are uniform there.
_FEW_VALUES = 10
_MOST_CLUSTERS = 10
#: Clusters of a method that finds their number, more than which are no summary of a table.
_MOST_FOUND = 20


@dataclass
class Candidate:
    """A method with a number of clusters (0 where it finds the number itself), and what was measured of it."""

    method: Method
    k: int
    data: Resampled
    references: list[Resampled]

    @property
    def name(self) -> str:
        return f"{self.method.name}, {self.k} clusters" if self.k else self.method.name

    @property
    def is_useful(self) -> bool:
        return 1 < self.data.n_clusters <= _MOST_FOUND

    @property
    def by_chance(self) -> float:
        """Mean evidence over the references."""
        return float(np.mean([r.evidence for r in self.references]))

    @property
    def beyond_chance(self) -> float:
        return self.data.evidence - self.by_chance


@dataclass
class Found:
    """The candidates, and those that were not tried."""

    candidates: list[Candidate]
    skipped: list[str]

    def ranked(self) -> list[Candidate]:
        """The candidates from the best on: the best of each method by its evidence, then the others.

        Those that find no clusters, or more than one can look at, come last.
        """
        order = sorted(self.candidates, key=lambda c: (not c.is_useful, -c.beyond_chance))
        leaders = list({c.method.name: c for c in reversed(order)}.values())
        leaders.sort(key=lambda c: (not c.is_useful, c.beyond_chance <= 0, -c.data.evidence))
        return [*leaders, *(c for c in order if c not in leaders)]

    def p_value(self, candidate: Candidate) -> float:
        """Share of the tables without clusters whose best candidate is as far above chance, this table counted in."""
        evidence = np.array([[r.evidence for r in c.references] for c in self.candidates])
        largest = (evidence - evidence.mean(axis=1, keepdims=True)).max(axis=0)
        return (1 + int((largest >= candidate.beyond_chance).sum())) / (1 + len(largest))


def numbers_of_clusters(X: np.ndarray) -> list[int]:
    """From two on, as far as clusters would have some rows each, and rows that differ."""
    distinct = len(np.unique(X, axis=0))
    return list(range(2, max(min(_MOST_CLUSTERS, len(X) // _ROWS_OF_A_CLUSTER, distinct - 1), 2) + 1))


def reference_table(X: np.ndarray, sources: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    """A table without clusters: numbers uniform along their principal axes, columns of few values shuffled.

    The features of a category are shuffled together, those of different columns independently.
    """
    few = np.array([len(np.unique(column)) <= _FEW_VALUES for column in X.T])
    out = np.empty_like(X)
    if not few.all():
        out[:, ~few] = uniform_reference(X[:, ~few], rng)
    blocks: dict[str, list[int]] = {}
    for j in np.flatnonzero(few):
        blocks.setdefault(sources[int(j)], []).append(int(j))
    for columns in blocks.values():
        out[:, columns] = X[rng.permutation(len(X))][:, columns]
    return out


def search(
    X: np.ndarray,
    sources: Sequence[str],
    methods: Sequence[Method],
    k: int | None,
    seed: int,
    budget: Budget,
    messages: Messages,
) -> Found:
    """Measure all candidates on a sample of the rows, as far as the time goes, and choose one."""
    most = max(RESAMPLED_ROWS, _ROWS_OF_A_CLUSTER * (k or 0))
    if len(X) > most:
        X = X[np.sort(stream(seed, "sample").choice(len(X), most, replace=False))]
    references = [reference_table(X, sources, stream(seed, "reference", r)) for r in range(_REFERENCES)]
    numbers = numbers_of_clusters(X) if k is None else [k]
    plan = [(method, number) for method in methods for number in (numbers if method.takes_k else [0])]
    found: list[Candidate] = []
    skipped: list[str] = []
    slowest = 0.0
    for method, number in plan:
        before = budget.spent()
        if found and budget.left(0.1 * budget.seconds) < slowest:
            skipped.append((f"{method.name}, {number} clusters" if number else method.name) + ": the time was up")
            continue
        messages.stage(f"trying {method.name}" + (f" with {number} clusters" if number else ""))
        try:
            candidate = _measured(method, number, X, references, seed)
        except EpicycleError as error:  # such as a mixture whose components collapse
            skipped.append(f"{method.name}, {number} clusters: {' '.join(str(error).split())[:160]}")
            continue
        found.append(candidate)
        slowest = max(slowest, budget.spent() - before)
        messages.line(
            f"{budget.spent():6.1f} s  {candidate.name}: stability {candidate.data.scores.mean():.2f}, silhouette "
            f"{candidate.data.silhouettes.mean():.2f}, beyond chance {candidate.beyond_chance:+.2f}"
        )
    if not found:
        raise DataError(f"no method could be fitted: {skipped[0]}")
    return Found(found, skipped)


def _measured(method: Method, k: int, X: np.ndarray, references: list[np.ndarray], seed: int) -> Candidate:
    estimator = method.make(k, seed)
    data = resampled(estimator, X, _SUBSAMPLE, _PAIRS, seed, "data")
    others = [
        resampled(estimator, table, _SUBSAMPLE, _REFERENCE_PAIRS, seed, f"reference {r}")
        for r, table in enumerate(references)
    ]
    return Candidate(method, k, data, others)
