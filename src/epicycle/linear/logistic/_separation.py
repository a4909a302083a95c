"""Separation: why an unpenalised likelihood of classes may have no maximum, and which columns do it.

Along a direction D with (D_y - D_k)'(x_i, 1) >= 0 for every row i of class y and every other class k, and > 0 for some,
the likelihood rises for ever (Albert and Anderson 1984): the classes are separated completely where all are positive,
quasi-completely otherwise. Without such a direction the maximum exists. Two linear programs tell:

    maximise sum t_ik  subject to  (D_y - D_k)'(x_i, 1) >= t_ik,  0 <= t_ik <= 1

has t = 1 wherever a row can be told from a class and t = 0 elsewhere, because directions add up; and among the
directions with a margin of one wherever t = 1, the one of least sum of |D_kj| sd_j is sparse: it names the columns.
Large data enters as cutting planes: a direction is checked against all rows, and the rows that it fails are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from epicycle import engine
from epicycle.data import Batch, Data
from epicycle.linear.logistic._objective import LogisticObjective
from epicycle.linear.logistic._statistics import Largest, margin_statistic, row_weights, shifted_features, targets_of
from epicycle.optim import Solution

#: Parameters that a direction may have, at most.
MAX_FREE = 3000
#: Numbers in the constraints of the first linear program; rows that are added at a time; and how often.
MAX_SIZE, CUTS, ROUNDS = 60_000, 500, 25
#: Columns that are tried to be left out of the names.
MAX_PRUNED = 20
#: A margin below this, relative to the terms that it is made of, is zero but for rounding.
TINY = 1e-9


@dataclass(frozen=True)
class Separation:
    """A direction of recession: `kind` is "complete" or "quasi-complete", `columns` those that it needs.

    `rows_told_apart` counts the rows with a positive margin against some class, of `n_rows`.
    """

    kind: str
    direction: np.ndarray
    columns: tuple[int, ...]
    rows_told_apart: int
    n_rows: int


def examine_separation(objective: LogisticObjective, solution: Solution, names: list[str]) -> str:
    """Look for separation where a fit without a penalty reached no maximum.

    Gives the words for what was found, empty where there is no separation: whether the classes, or one class and all
    others, are told apart without a tie or but for ties.
    """
    if (solution.converged and solution.value >= objective.separation_level) or not np.isfinite(solution.x).all():
        return ""
    params = objective.matrix(solution.x)
    worst = engine.sum(margin_statistic, objective.data, params, objective.shift, n_jobs=objective.n_jobs)
    found = find_separation(objective, solution.x)
    apart = min(worst) < 0 or (found is not None and found[1])
    if not apart and found is None:
        return ""
    if found is not None and found[0].columns:
        columns = found[0].columns
    else:
        columns = tuple(int(j) for j in np.argsort(-np.abs(params[:, :-1]).max(axis=0))[:5])
    named = ", ".join(names[j] for j in columns[:10]) + (", ..." if len(columns) > 10 else "")
    if apart:
        return (
            "y: the classes are separable, so the unpenalised likelihood has no maximum; the coefficients grow for "
            f"{named}. Use a finite C"
        )
    assert found is not None
    told, n = found[0].rows_told_apart, found[0].n_rows
    return (
        f"y: the classes are separable but for ties (quasi-complete separation by {named}: {told} of {n} rows are told "
        "apart without a mistake), so the unpenalised likelihood has no maximum; the coefficients grow for "
        f"{named}. Use a finite C"
    )


class Picked:
    """Rows with the lowest marks, as many as `limit`; adds up by keeping the lowest of both."""

    def __init__(self, X: np.ndarray, codes: np.ndarray, mark: np.ndarray, limit: int) -> None:
        keep = np.argsort(mark, kind="stable")[:limit]
        self.X, self.codes, self.mark, self.limit = X[keep], codes[keep], mark[keep], limit

    def __add__(self, other: Picked) -> Picked:
        return Picked(
            np.vstack([self.X, other.X]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.mark, other.mark]),
            self.limit,
        )


def _rows(batch: Batch, chosen: np.ndarray, shift: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(x - shift) / scale and a one, of some rows, dense."""
    X = batch.X[chosen]
    X = X.toarray() if sp.issparse(X) else X
    return np.column_stack([(X - shift) / scale, np.ones(len(chosen))])


def _margins(batch: Batch, direction: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Margins of every row against the classes (inf at its own), and the size of the terms that they are made of."""
    X = shifted_features(batch, shift)
    Z = np.asarray(X @ direction[:, :-1].T) + direction[:, -1]
    size = np.asarray(abs(X) @ np.abs(direction[:, :-1]).max(axis=0)) + np.abs(direction[:, -1]).max()
    codes = targets_of(batch).astype(np.intp)
    if len(direction) == 1:
        return ((2 * codes - 1) * Z[:, 0])[:, None], size
    margins = np.take_along_axis(Z, codes[:, None], axis=1) - Z
    np.put_along_axis(margins, codes[:, None], np.inf, axis=1)
    return margins, size


def hardest_statistic(
    batch: Batch, params: np.ndarray, shift: np.ndarray, scale: np.ndarray, limit: int
) -> tuple[Picked, Picked]:
    """Rows with the lowest and with the highest margins at a point."""
    margins, _ = _margins(batch, params, shift)
    least = margins.min(axis=1)
    found = []
    for mark in (least, -least):
        mark = np.where(_used(batch), mark, np.inf)
        chosen = np.argsort(mark, kind="stable")[:limit]
        chosen = chosen[np.isfinite(mark[chosen])]
        found.append(
            Picked(_rows(batch, chosen, shift, scale), targets_of(batch)[chosen].astype(np.intp), mark[chosen], limit)
        )
    return found[0], found[1]


def violation_statistic(
    batch: Batch, direction: np.ndarray, shift: np.ndarray, scale: np.ndarray, limit: int
) -> tuple[Picked, int, int, np.ndarray]:
    """(rows on the wrong side, rows told apart from some class, rows, for every class whether it is told from all)."""
    margins, size = _margins(batch, direction, shift)
    used = _used(batch)
    relative = np.where(used[:, None], margins, np.inf) / np.maximum(size, np.finfo(float).tiny)[:, None]
    least = relative.min(axis=1)
    chosen = np.flatnonzero(least < -TINY)
    chosen = chosen[np.argsort(least[chosen], kind="stable")[:limit]]
    picked = Picked(_rows(batch, chosen, shift, scale), targets_of(batch)[chosen].astype(np.intp), least[chosen], limit)
    told = used & (np.where(np.isfinite(relative), relative, -np.inf).max(axis=1) > TINY)
    return picked, int(told.sum()), int(used.sum()), _ties(batch, relative, len(direction))


def largest_statistic(batch: Batch, params: np.ndarray, shift: np.ndarray) -> tuple[Largest]:
    """The largest margin by which a row is told from a class."""
    margins, _ = _margins(batch, params, shift)
    return (Largest(np.where(np.isfinite(margins) & _used(batch)[:, None], margins, -np.inf).max(initial=-np.inf)),)


def largest_margin(objective: LogisticObjective, x: np.ndarray) -> float:
    """The largest margin by which a row is told from a class at a point."""
    params = objective.matrix(x)
    (largest,) = engine.sum(largest_statistic, objective.data, params, objective.shift, n_jobs=objective.n_jobs)
    return float(largest)


def _ties(batch: Batch, relative: np.ndarray, n_rows: int) -> np.ndarray:
    """For every class, how many pairs of one of its rows and another class are tied; both ways."""
    tied = relative <= TINY
    codes = targets_of(batch).astype(np.intp)
    if n_rows == 1:
        return np.array([int(tied.sum())] * 2)
    of_class = np.array([int(tied[codes == k].sum()) for k in range(n_rows)])
    return np.asarray(of_class + tied.sum(axis=0))


def _used(batch: Batch) -> np.ndarray:
    weight = row_weights(batch, None)
    return np.ones(batch.n_rows, dtype=bool) if weight is None else weight > 0


def find_separation(objective: LogisticObjective, x: np.ndarray) -> tuple[Separation, bool] | None:
    """A separation of the classes, and whether some class is told from all others without a tie; None if there is none.

    `x` is where the fit without a penalty ended: large data is looked at first where that point is worst and best.
    """
    data: Data = objective.data
    K, p = objective.rows, data.n_features
    if K * (p + 1) > MAX_FREE:
        return None
    scale = np.sqrt(np.maximum(objective._column_squares()[:p] / objective.total_weight, 0.0))
    scale[scale == 0] = 1.0
    limit = max(50, MAX_SIZE // ((p + 1) * max(1, K - 1) * 2))
    params = objective.matrix(x)
    easy, hard = engine.sum(hardest_statistic, data, params, objective.shift, scale, limit, n_jobs=objective.n_jobs)
    rows = np.vstack([easy.X, hard.X])
    codes = np.concatenate([easy.codes, hard.codes])
    rows, codes = _distinct(rows, codes)
    checked = None
    for sparse_direction in (False, True):
        for _ in range(ROUNDS):
            D = _direction(rows, codes, K, intercept=objective.intercept, sparse_direction=sparse_direction)
            if D is None:
                break
            direction = D / np.append(scale, 1.0)
            picked, told, n, ties = engine.sum(
                violation_statistic, data, direction, objective.shift, scale, CUTS, n_jobs=objective.n_jobs
            )
            if len(picked.codes) == 0:
                checked = (D, direction, told, n, ties) if told else None
                break
            rows, codes = _distinct(np.vstack([rows, picked.X]), np.concatenate([codes, picked.codes]))
            if rows.size * max(1, K - 1) > 10 * MAX_SIZE:
                break
        if checked is None:
            return None
        if not sparse_direction:
            first = checked
    _, _, told, n, ties = first
    assert checked is not None
    D, direction = checked[:2]
    size = np.abs(D[:, :-1] - (D[:, :-1].mean(axis=0) if K > 1 else 0.0)).max(axis=0)
    columns = np.flatnonzero(size > 1e-7 * max(size.max(initial=0.0), np.finfo(float).tiny))
    columns = columns[np.argsort(-size[columns], kind="stable")]
    kind = "quasi-complete" if ties.any() else "complete"
    found = Separation(kind, direction, tuple(int(j) for j in columns), told, n)
    return found, bool((ties == 0).any())


def _distinct(rows: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    both = np.unique(np.column_stack([codes, rows]), axis=0)
    return both[:, 1:], both[:, 0].astype(np.intp)


def _constraints(rows: np.ndarray, codes: np.ndarray, K: int) -> sp.csr_array:
    """One row (D_y - D_k)'(x, 1) for every row of data and other class, over the flattened D."""
    if K == 1:
        return sp.csr_array((2 * codes - 1)[:, None] * rows)
    blocks = []
    for k in range(K):
        chosen = np.flatnonzero(codes != k)
        A = sp.lil_array((len(chosen), K))
        A[np.arange(len(chosen)), codes[chosen]] = 1.0
        A[np.arange(len(chosen)), k] = -1.0
        blocks.append(_row_products(A.tocsr(), rows[chosen]))
    return sp.vstack(blocks).tocsr()


def _row_products(A: sp.csr_array, X: np.ndarray) -> sp.csr_array:
    """Row by row the Kronecker product of a row of A and a row of X."""
    K = A.shape[1]
    return sp.hstack([sp.csr_array(A[:, [k]].toarray() * X) for k in range(K)]).tocsr()


def _direction(
    rows: np.ndarray, codes: np.ndarray, K: int, *, intercept: bool, sparse_direction: bool
) -> np.ndarray | None:
    """The direction of the first linear program over these rows, or of the second; None where there is none."""
    A = _constraints(rows, codes, K)
    m, size = A.shape
    free = np.ones((K, size // K), dtype=bool)
    free[:, -1] = intercept
    bounds = [(None, None) if f else (0.0, 0.0) for f in free.ravel()]
    first = linprog(
        np.concatenate([np.zeros(size), -np.ones(m)]),
        A_ub=sp.hstack([-A, sp.eye_array(m)]),
        b_ub=np.zeros(m),
        bounds=bounds + [(0.0, 1.0)] * m,
        method="highs",
    )
    if first.status != 0 or not -first.fun > 0.5:
        return None
    D = np.asarray(first.x[:size]).reshape(K, -1)
    return _pruned(A, (first.x[size:] > 0.5).astype(np.float64), free, D) if sparse_direction else D


def _least(A: sp.csr_array, needed: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """The direction of least sum of moduli with these margins, in the free parameters; None where there is none."""
    cost = np.ones(free.shape)
    cost[:, -1] = 0.0  # the intercept is not a column
    upper = [(0.0, None if f else 0.0) for f in np.concatenate([free.ravel(), free.ravel()])]
    found = linprog(
        np.concatenate([cost.ravel(), cost.ravel()]),
        A_ub=sp.hstack([-A, A]),
        b_ub=-needed,
        bounds=upper,
        method="highs",
    )
    return np.asarray(found.x[: free.size] - found.x[free.size :]).reshape(free.shape) if found.status == 0 else None


def _pruned(A: sp.csr_array, needed: np.ndarray, free: np.ndarray, D: np.ndarray) -> np.ndarray:
    """The sparse direction without columns that only widen its margins: the smallest go, one by one, while they can."""
    free = free.copy()
    for _ in range(MAX_PRUNED):
        least = _least(A, needed, free)
        if least is None:
            break
        D = least
        size = np.abs(D[:, :-1]).max(axis=0)
        used = np.flatnonzero(size > 1e-9 * max(size.max(initial=0.0), np.finfo(float).tiny))
        free[:, :-1] = False
        free[:, used] = True
        if len(used) <= 1:
            break
        free[:, used[np.argmin(size[used])]] = False
    return D
