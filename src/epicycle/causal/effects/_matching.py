r"""Matching: every row is compared with its nearest rows of the other arm.

The outcome that was not seen is that of the M matches j, with bias correction moved by linear regressions mu_t of the
matched rows to the covariates of row i:

    y_i(1 - t) = 1/M sum_j [ y_j + mu(x_i) - mu(x_j) ],     tau = mean over the target of y_i(1) - y_i(0).

With K_i the number of times that row i is a match and s_i^2 its conditional variance, from the nearest rows of its own
arm, Abadie and Imbens (2006) estimate the variance of tau by

    ate:  1/N^2  sum_i [ (tau_i - tau)^2 + ((K_i/M)^2 + (2M - 1)/M K_i/M) s_i^2 ]
    att:  1/N1^2 sum_i [ t (tau_i - tau)^2 + (1 - t) K_i (K_i - 1)/M^2 s_i^2 ] .

Rows are put into an order that follows from their content first, so that ties do not depend on the order given.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np

from epicycle import _native
from epicycle.causal.effects._estimate import Estimate
from epicycle.causal.effects._folds import content_keys
from epicycle.causal.effects._study import Study
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, OverlapWarning
from epicycle.core._threads import n_threads

PointTree = _native.neighbors.PointTree
#: Neighbours of a row's own arm that its conditional variance is estimated from.
_OWN = 2
_MOST_ROWS = 100_000_000  # that rows of weight above one may stand for: beyond, neither time nor memory is bounded
_FIRST_CANDIDATES = 8  # of a row that is matched without replacement


@dataclass(frozen=True)
class Matcher:
    """Options of a search for matches."""

    n_neighbors: int
    replacement: bool
    caliper: float | None
    n_jobs: int | None


def whole_rows(study: Study) -> tuple[Study, np.ndarray]:
    """(the study with every row as often as its weight says, in the order of content; the row that each is)."""
    whole = np.rint(study.w)
    if np.abs(study.w - whole).max() > 1e-9:
        raise DataError("sample_weight: matching counts rows; expected whole numbers")
    if whole.sum() > _MOST_ROWS:
        raise DataError(f"sample_weight: stands for {whole.sum():,.7g} rows to match; expected at most {_MOST_ROWS:,}")
    counts = whole.astype(np.int64)
    rows = np.argsort(content_keys(study, 0), kind="stable")
    rows = np.repeat(rows, counts[rows])
    taken = replace(study, X=study.X[rows], t=study.t[rows], y=study.y[rows], w=np.ones(len(rows)), weighted=False)
    return taken, rows


def matches(
    Z: np.ndarray, t: np.ndarray, cells: np.ndarray, treated_first: bool, matcher: Matcher
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, their matches (n, M)) of one arm in the other, in the same cell and within the caliper."""
    from_arm, to_arm = (1.0, 0.0) if treated_first else (0.0, 1.0)
    rows, found = [], []
    order = np.argsort(cells, kind="stable")
    for block in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        queries, pool = block[t[block] == from_arm], block[t[block] == to_arm]
        if len(queries) == 0 or len(pool) < matcher.n_neighbors:
            continue
        search = _nearest if matcher.replacement else _greedy
        kept, which = search(Z[queries], Z[pool], matcher)
        rows.append(queries[kept])
        found.append(pool[which])
    if not rows or not sum(map(len, rows)):
        raise DataError("X: no row has a match within the caliper and the exact columns; the arms do not overlap")
    return np.concatenate(rows), np.concatenate(found)


def _nearest(Q: np.ndarray, P: np.ndarray, matcher: Matcher) -> tuple[np.ndarray, np.ndarray]:
    """(rows of Q that have enough matches, the matches), with replacement."""
    tree = PointTree(np.ascontiguousarray(P))
    distances, which = _query(tree, Q, matcher.n_neighbors, matcher)
    kept = np.isfinite(distances[:, -1])
    return np.flatnonzero(kept), which[kept]


def _query(tree: PointTree, Q: np.ndarray, k: int, matcher: Matcher) -> tuple[np.ndarray, np.ndarray]:
    bound = np.inf if matcher.caliper is None else matcher.caliper * (1 + 1e-12)
    threads = n_threads(1000.0 * len(Q) * k, matcher.n_jobs)
    return _native.neighbors.nearest_rows(tree, np.ascontiguousarray(Q), k, bound, threads)


def _greedy(Q: np.ndarray, P: np.ndarray, matcher: Matcher) -> tuple[np.ndarray, np.ndarray]:
    """The same without replacement: the closest pair of all first, then the closest of what is left.

    A row waits in the heap with the distance of its next candidate; one whose candidate is gone goes back with the
    next. Lists of candidates are doubled when they end, so that the work is bounded by the pairs within the caliper.
    """
    tree = PointTree(np.ascontiguousarray(P))
    k = min(_FIRST_CANDIDATES, len(P))
    distances, which = _query(tree, Q, k, matcher)
    lists = {i: (distances[i], which[i]) for i in range(len(Q))}
    heap = [(distances[i, 0], i, 0) for i in range(len(Q)) if np.isfinite(distances[i, 0])]
    heapq.heapify(heap)
    taken = np.zeros(len(P), dtype=bool)
    chosen: dict[int, list[int]] = {}
    while heap:
        distance, i, place = heapq.heappop(heap)
        found, candidates = lists[i]
        if not taken[candidates[place]]:
            taken[candidates[place]] = True
            chosen.setdefault(i, []).append(int(candidates[place]))
            if len(chosen[i]) == matcher.n_neighbors:
                continue
        place += 1
        if place == len(found) and len(found) < len(P):
            more, rows = _query(tree, Q[i : i + 1], min(2 * len(found), len(P)), matcher)
            lists[i] = found, _ = more[0], rows[0]
        if place < len(found) and np.isfinite(found[place]):
            heapq.heappush(heap, (float(max(found[place], distance)), i, place))
    full = sorted(i for i, ids in chosen.items() if len(ids) == matcher.n_neighbors)
    partners = np.array([chosen[i] for i in full], dtype=np.int64).reshape(len(full), matcher.n_neighbors)
    return np.array(full, dtype=np.int64), partners


def matched_difference(
    study: Study,
    Z: np.ndarray,
    cells: np.ndarray,
    estimand: str,
    matcher: Matcher,
    *,
    bias_correction: bool,
    by_score: bool = False,
) -> Estimate:
    """The effect from matches by Euclidean distance in Z, of rows as :func:`whole_rows` gives them.

    `by_score` says that Z is a score: rows near in it differ in their covariates, and the regressions of the bias
    correction, which take those differences off the effect, take them off the variances of rows too.
    """
    if Z.shape[1] == 0:
        raise DataError("X: no covariate varies; matching needs one that rows can be near in")
    t, y, X = study.t, study.y, study.dense()
    n, M = len(y), matcher.n_neighbors
    sides = {"ate": (True, False), "att": (True,), "atc": (False,)}[estimand]
    found = [matches(Z, t, cells, side, matcher) for side in sides]
    used = np.zeros(n)
    for _, partners in found:
        np.add.at(used, partners.ravel(), 1.0)
    differences = np.zeros(n)
    in_target = np.zeros(n, dtype=bool)
    left = y
    for rows, partners in found:
        other = y[partners]
        if bias_correction:
            arm = t == t[partners[0, 0]]
            b = _slopes(X, y, used, arm)
            if by_score:
                left = left - arm * (X @ b)
            other = other + (X[rows] @ b)[:, None] - X[partners] @ b
        differences[rows] = np.where(t[rows] == 1, 1.0, -1.0) * (y[rows] - other.mean(axis=1))
        in_target[rows] = True
    size = int(in_target.sum())
    tau = float(differences[in_target].mean())
    K = used / M
    extra = K**2 + (2 * M - 1) / M * K if estimand == "ate" else K * (K - 1 / M)
    noise = _own_variances(Z, left, t, matcher.n_jobs, extra != 0)
    variance = float(np.sum((differences[in_target] - tau) ** 2) + extra @ noise) / size**2
    claim = "the effect is the mean difference between rows and their nearest matches, which are found exactly"
    if not matcher.replacement:
        claim = "the effect is the mean difference between rows and matches, the closest of those left in every step"
    estimate = Estimate(tau, variance, Certificate("closed form", 0.0, 0.0, claim), weights=in_target + K)
    lost = 1 - size / float(study.target(estimand).sum())
    estimate.facts = {"matched": float(size), "left_out": lost, "used": float(np.count_nonzero(used))}
    if lost > 0:
        estimate.notices.append(
            OverlapWarning(f"{lost:.1%} of the target rows have no match: the effect is that of the others")
        )
    return estimate


def _slopes(X: np.ndarray, y: np.ndarray, used: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Coefficients of the least-squares fit to the matched rows of an arm, each as often as it is used."""
    rows = arm & (used > 0)
    w = used[rows]
    D = X[rows] - w @ X[rows] / w.sum()
    r = y[rows] - w @ y[rows] / w.sum()
    return np.asarray(np.linalg.lstsq(D * np.sqrt(w)[:, None], r * np.sqrt(w), rcond=1e-10)[0])


def _own_variances(Z: np.ndarray, y: np.ndarray, t: np.ndarray, n_jobs: int | None, needed: np.ndarray) -> np.ndarray:
    """s_i^2 = J/(J+1) (y_i - mean of the J nearest of its own arm)^2 for the rows that are needed."""
    noise = np.zeros(len(y))
    everyone = Matcher(_OWN + 1, True, None, n_jobs)
    for arm in (0.0, 1.0):
        rows = np.flatnonzero(t == arm)
        asked = rows[needed[rows]]
        if len(rows) < 2 or len(asked) == 0:
            continue
        k = min(_OWN + 1, len(rows))
        near = rows[_query(PointTree(np.ascontiguousarray(Z[rows])), Z[asked], k, everyone)[1]]
        own = near == asked[:, None]
        own[~own.any(axis=1), -1] = True  # equal rows: any of them may stand for the row itself
        J = k - 1
        mean = y[near[~own].reshape(len(asked), J)].mean(axis=1)
        noise[asked] = J / (J + 1) * (y[asked] - mean) ** 2
    return noise
