"""Logistic regression along paths of penalties: weakest last, each solution started from the one before.

A fold is trained on all rows with weight zero on those that are left out, so that no rows are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import ArrayData
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear._folds import Fold
from epicycle.linear.logistic._duality import penalties
from epicycle.linear.logistic._l1 import at_origin, column_solver, sums_pay
from epicycle.linear.logistic._objective import LogisticObjective, far_shift
from epicycle.linear.logistic._proximal_newton import HessianSolver
from epicycle.linear.logistic._solve import minimise
from epicycle.optim import Monitor
from epicycle.optim._working_set import Outcome


@dataclass(frozen=True)
class PathSettings:
    """The settings of a path: penalties, classes, intercept, weights and accuracy."""

    Cs: np.ndarray
    l1_ratios: np.ndarray
    n_classes: int
    intercept: bool
    class_weight: np.ndarray | None
    tol: float
    max_iter: int


@dataclass(frozen=True)
class Paths:
    """Coefficients of shape (n_folds, n_l1_ratios, n_Cs, rows, p + 1), scores without the last two axes, and gaps."""

    params: np.ndarray
    scores: np.ndarray
    gaps: np.ndarray
    failed: int


#: (rows of a fold to test on, parameters of a path) -> one score for each.
Score = Callable[[np.ndarray, np.ndarray], np.ndarray]


def fold_paths(
    data: ArrayData, folds: Sequence[Fold], settings: PathSettings, score: Score, n_jobs: int | None
) -> Paths:
    """The paths of all folds and shares; each runs on one thread: the result does not depend on how many there are."""
    by_column = data
    if sp.issparse(data.X) and (settings.l1_ratios > 0).any():
        by_column = ArrayData(sp.csc_array(data.X), data.y, data.weight)
    rows = 1 if settings.n_classes == 2 else settings.n_classes
    shape = len(folds), len(settings.l1_ratios), len(settings.Cs)
    params = np.empty((*shape, rows, data.n_features + 1))
    scores, gaps, failed = np.empty(shape), np.empty(shape), [0]
    pieces = [(f, r) for f in range(len(folds)) for r in range(len(settings.l1_ratios))]

    def work(piece: tuple[int, int]) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray, int]:
        f, r = piece
        ratio = float(settings.l1_ratios[r])
        found, gap, missed = _path(data if ratio == 0 else by_column, folds[f], ratio, settings)
        return f, r, found, score(folds[f].test, found), gap, missed

    def consume(result: tuple[int, int, np.ndarray, np.ndarray, np.ndarray, int]) -> None:
        f, r, found, of_path, gap, missed = result
        params[f, r], scores[f, r], gaps[f, r] = found, of_path, gap
        failed[0] += missed

    in_order(iter(pieces), work, consume, min(n_threads(float("inf"), n_jobs), len(pieces)))
    return Paths(params, scores, gaps, failed[0])


def _path(data: ArrayData, fold: Fold, l1_ratio: float, settings: PathSettings) -> tuple[np.ndarray, np.ndarray, int]:
    """(parameters, relative gaps, solutions that did not converge) of one path."""
    weight = np.zeros(data.n_rows)
    np.add.at(weight, fold.train, 1.0)
    if data.weight is not None:
        weight *= data.weight
    part = ArrayData(data.X, data.y, weight)
    follow = _smooth if l1_ratio == 0 else _sparse
    order = np.argsort(settings.Cs, kind="stable")
    params, gaps, converged = follow(part, settings.Cs[order], l1_ratio, settings)
    back = np.argsort(order, kind="stable")
    return params[back], gaps[back], int(np.count_nonzero(~converged))


def _smooth(
    data: ArrayData, Cs: np.ndarray, _l1_ratio: float, settings: PathSettings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shift = far_shift(data) if settings.intercept else np.zeros(data.n_features)
    objective = LogisticObjective(
        data,
        settings.n_classes,
        1.0,
        intercept=settings.intercept,
        shift=shift,
        class_weight=settings.class_weight,
        n_jobs=1,
    )
    start, found, gaps, converged = None, [], [], []
    for C in Cs:
        solution = minimise(
            objective.with_penalty(1.0 / C),
            "auto",
            tol=settings.tol,
            max_iter=settings.max_iter,
            monitor=Monitor(),
            state=None,
            options={},
            random_state=None,
            start=start,
        )
        start = solution.x
        params = objective.matrix(start).copy()
        params[:, -1] -= params[:, :-1] @ shift
        if len(params) > 1:
            params -= params.mean(axis=0)
        found.append(params)
        gaps.append(solution.certificate.value)
        converged.append(solution.converged)
    return np.array(found), np.array(gaps), np.array(converged)


def _sparse(
    data: ArrayData, Cs: np.ndarray, l1_ratio: float, settings: PathSettings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    minimise_at = _on_sums(data, settings) if sums_pay(data, _rows(settings)) else _on_columns(data, settings)
    outcomes = [minimise_at(*penalties(float(C), l1_ratio)) for C in Cs]
    params = np.array([o.x for o in outcomes])
    if params.shape[1] > 1:
        params[:, :, -1] -= params[:, :, -1].mean(axis=1, keepdims=True)
    gaps = np.array([o.gap / max(o.objective, np.finfo(float).tiny) for o in outcomes])
    return params, gaps, np.array([o.reason == "converged" for o in outcomes])


def _rows(settings: PathSettings) -> int:
    return 1 if settings.n_classes == 2 else settings.n_classes


def _on_columns(data: ArrayData, settings: PathSettings) -> Callable[[float, float], Outcome]:
    solver = column_solver(
        data, settings.n_classes, intercept=settings.intercept, class_weight=settings.class_weight, n_jobs=1
    )
    return lambda l1, l2: solver.minimise(l1, l2, settings.tol, settings.max_iter)


def _on_sums(data: ArrayData, settings: PathSettings) -> Callable[[float, float], Outcome]:
    shift = far_shift(data) if settings.intercept else np.zeros(data.n_features)
    solver = HessianSolver(
        data,
        settings.n_classes,
        intercept=settings.intercept,
        shift=shift,
        class_weight=settings.class_weight,
        n_jobs=1,
    )
    last = [np.zeros((_rows(settings), data.n_features + 1))]

    def minimise_at(l1: float, l2: float) -> Outcome:
        found = solver.minimise(last[0], l1, l2, settings.tol, settings.max_iter)
        last[0] = found.x
        return replace(found, x=at_origin(found.x, shift))

    return minimise_at


def path_scores(
    scorer: Any,
    model_at: Callable[[np.ndarray], Any],
    labelled: ArrayData,
    data: ArrayData,
    test: np.ndarray,
    params: np.ndarray,
    classes: np.ndarray,
) -> np.ndarray:
    """One score for each model of `params` (n, rows, p + 1), by a scorer of scikit-learn.

    Log loss and accuracy of all models come from one product. Rows of no weight do not count, and neither do rows of a
    class that has none.
    """
    assert labelled.y is not None
    assert data.y is not None
    known = np.isin(labelled.y[test], classes)
    weight = None if data.weight is None else data.weight[test]
    if weight is not None and (weight * known).any():
        known &= weight > 0
    else:
        weight = None
    test = test[known]
    X = labelled.X[test] if not sp.issparse(labelled.X) else sp.csr_array(labelled.X)[test]
    weight = None if weight is None else weight[known]
    kind = getattr(scorer, "_score_func", None)
    name = getattr(kind, "__name__", "")
    if name in ("log_loss", "accuracy_score") and not getattr(scorer, "_kwargs", {"": 1}):
        return _direct(name, X, data.y[test].astype(np.intp), weight, params)
    given = {} if weight is None else {"sample_weight": weight}
    return np.array([scorer(model_at(of_model), X, labelled.y[test], **given) for of_model in params])


def _direct(name: str, X: Any, codes: np.ndarray, weight: np.ndarray | None, params: np.ndarray) -> np.ndarray:
    n, rows, d = params.shape
    flat = params.reshape(n * rows, d)
    Z = (np.asarray(X @ flat[:, :-1].T) + flat[:, -1]).reshape(len(codes), n, rows)
    if rows == 1:
        Z = np.concatenate([np.zeros_like(Z), Z], axis=2)
    own = Z[np.arange(len(codes)), :, codes]
    if name == "accuracy_score":
        hit = Z.argmax(axis=2) == codes[:, None]
        return np.asarray(np.average(hit, axis=0, weights=weight))
    most = Z.max(axis=2, keepdims=True)
    loss = most[:, :, 0] + np.log(np.exp(Z - most).sum(axis=2)) - own
    return -np.asarray(np.average(loss, axis=0, weights=weight))
