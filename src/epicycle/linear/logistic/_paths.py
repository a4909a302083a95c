"""Logistic regression along paths of penalties: weakest last, each solution started from the one before.

A fold is trained on all rows with weight zero on those that are left out, so that no rows are copied.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import ArrayData, Batch, Data
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear._folds import Fold, training_weights
from epicycle.linear.logistic._absent_classes import embedded, recoded, ridge_factor
from epicycle.linear.logistic._duality import penalties
from epicycle.linear.logistic._fold_rows import FoldRows, class_totals, score_statistic, sum_rows
from epicycle.linear.logistic._l1 import at_origin, column_solver, refuse_many, sums_pay
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
    ridge_factor: float = 1.0  # on the L2 penalty


@dataclass(frozen=True)
class Paths:
    """Coefficients of shape (n_folds, n_l1_ratios, n_Cs, rows, p + 1); the rest without the last two axes.

    failed : number of solutions that did not converge.
    """

    params: np.ndarray
    scores: np.ndarray
    gaps: np.ndarray
    n_iter: np.ndarray
    failed: int


#: Parameters, relative gaps, iterations and convergence of the solutions of one path.
Path = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


#: (rows of a fold to test on, parameters of a path) -> one score for each.
Score = Callable[[np.ndarray, np.ndarray], np.ndarray]


def fold_paths(data: Data, folds: Sequence[Fold], settings: PathSettings, score: Score, n_jobs: int | None) -> Paths:
    """The paths of all folds and shares.

    In memory each runs on one thread, so that the result does not depend on how many there are; over files and
    clusters they follow one another, and each pass is shared.
    """
    by_column = data
    if isinstance(data, ArrayData) and sp.issparse(data.X) and (settings.l1_ratios > 0).any():
        by_column = ArrayData(sp.csc_array(data.X), data.y, data.weight)
    elif not isinstance(data, ArrayData) and (settings.l1_ratios > 0).any():
        refuse_many(data, settings.n_classes)
    rows = 1 if settings.n_classes == 2 else settings.n_classes
    shape = len(folds), len(settings.l1_ratios), len(settings.Cs)
    params = np.empty((*shape, rows, data.n_features + 1))
    scores, gaps, n_iter, failed = np.empty(shape), np.empty(shape), np.empty(shape, np.int32), [0]
    pieces = [(f, r) for f in range(len(folds)) for r in range(len(settings.l1_ratios))]

    def work(piece: tuple[int, int]) -> tuple[int, int, Path, np.ndarray]:
        f, r = piece
        ratio = float(settings.l1_ratios[r])
        found = _path(data if ratio == 0 else by_column, folds[f], ratio, settings)
        return f, r, found, score(folds[f].test, found[0])

    def consume(result: tuple[int, int, Path, np.ndarray]) -> None:
        f, r, found, scores[f, r] = result
        params[f, r], gaps[f, r], n_iter[f, r], converged = found
        failed[0] += int(np.count_nonzero(~converged))

    at_once = min(n_threads(float("inf"), n_jobs), len(pieces)) if isinstance(data, ArrayData) else 1
    in_order(pieces, work, consume, at_once)
    return Paths(params, scores, gaps, n_iter, failed[0])


def rows_of_fold(data: Data, rows: np.ndarray) -> FoldRows:
    """Rows by number, of data that is not in memory."""
    return FoldRows(data, np.bincount(rows, minlength=data.n_rows or 0).astype(np.float64))


def _path(data: Data, fold: Fold, l1_ratio: float, settings: PathSettings) -> Path:
    """One path, in the order of the Cs."""
    part: Data
    if isinstance(data, ArrayData):
        part = ArrayData(data.X, data.y, training_weights(data, fold))
    else:
        part = rows_of_fold(data, fold.train)
    follow = _smooth if l1_ratio == 0 else _sparse
    order = np.argsort(settings.Cs, kind="stable")
    back = np.argsort(order, kind="stable")
    (totals,) = sum_rows(class_totals, part, settings.n_classes, n_jobs=_threads_of_a_pass(data))
    present = (totals if settings.class_weight is None else totals * settings.class_weight) > 0
    if present.all() or not settings.intercept:
        found = follow(part, settings.Cs[order], l1_ratio, settings)
    elif present.sum() == 1:  # the one class is certain
        m = len(order)
        params = embedded(np.zeros((m, 1, data.n_features + 1)), present)
        found = params, np.zeros(m), np.zeros(m, np.int32), np.ones(m, bool)
    else:
        part = part.encode_target(partial(recoded, present=present))
        factors = None if settings.class_weight is None else settings.class_weight[present]
        fewer = replace(
            settings, n_classes=int(present.sum()), class_weight=factors, ridge_factor=ridge_factor(present)
        )
        params, gaps, n_iter, converged = follow(part, settings.Cs[order], l1_ratio, fewer)
        found = embedded(params, present), gaps, n_iter, converged
    params, gaps, n_iter, converged = found
    return params[back], gaps[back], n_iter[back], converged[back]


def _smooth(data: Data, Cs: np.ndarray, _l1_ratio: float, settings: PathSettings) -> Path:
    shift = far_shift(data) if settings.intercept else np.zeros(data.n_features)
    objective = LogisticObjective(
        data,
        settings.n_classes,
        1.0,
        intercept=settings.intercept,
        shift=shift,
        class_weight=settings.class_weight,
        n_jobs=_threads_of_a_pass(data),
    )
    start, found, solutions = None, [], []
    for C in Cs:
        solution = minimise(
            objective.with_penalty(settings.ridge_factor / C),
            "auto",
            tol=settings.tol,
            max_iter=settings.max_iter,
            monitor=Monitor(),
            state=None,
            options={},
            random_state=None,
            start=start,
            settle=False,
        )
        start = solution.x
        params = objective.matrix(start).copy()
        params[:, -1] -= params[:, :-1] @ shift
        if len(params) > 1:
            params -= params.mean(axis=0)
        found.append(params)
        solutions.append((solution.certificate.value, solution.n_iter, solution.converged))
    gaps, n_iter, converged = map(np.array, zip(*solutions, strict=True))
    return np.array(found), gaps, n_iter, converged


def _threads_of_a_pass(data: Data) -> int | None:
    return 1 if isinstance(data, ArrayData) else None


def _sparse(data: Data, Cs: np.ndarray, l1_ratio: float, settings: PathSettings) -> Path:
    in_memory = isinstance(data, ArrayData) and not sums_pay(data, _rows(settings))
    minimise_at = _on_columns(data, settings) if in_memory else _on_sums(data, settings)
    weights = (penalties(float(C), l1_ratio) for C in Cs)
    outcomes = [minimise_at(l1, settings.ridge_factor * l2) for l1, l2 in weights]
    params = np.array([o.x for o in outcomes])
    if params.shape[1] > 1:
        params[:, :, -1] -= params[:, :, -1].mean(axis=1, keepdims=True)
    gaps = np.array([o.gap / max(o.objective, np.finfo(float).tiny) for o in outcomes])
    n_iter, converged = np.array([o.n_rounds for o in outcomes]), np.array([o.reason == "converged" for o in outcomes])
    return params, gaps, n_iter, converged


def _rows(settings: PathSettings) -> int:
    return 1 if settings.n_classes == 2 else settings.n_classes


def _on_columns(data: Data, settings: PathSettings) -> Callable[[float, float], Outcome]:
    assert isinstance(data, ArrayData)
    solver = column_solver(
        data, settings.n_classes, intercept=settings.intercept, class_weight=settings.class_weight, n_jobs=1
    )
    return lambda l1, l2: solver.minimise(l1, l2, settings.tol, settings.max_iter)


def _on_sums(data: Data, settings: PathSettings) -> Callable[[float, float], Outcome]:
    shift = far_shift(data) if settings.intercept else np.zeros(data.n_features)
    solver = HessianSolver(
        data,
        settings.n_classes,
        intercept=settings.intercept,
        shift=shift,
        class_weight=settings.class_weight,
        n_jobs=_threads_of_a_pass(data),
    )
    last = [np.zeros((_rows(settings), data.n_features + 1))]

    def minimise_at(l1: float, l2: float) -> Outcome:
        found = solver.minimise(last[0], l1, l2, settings.tol, settings.max_iter)
        last[0] = found.x
        return replace(found, x=at_origin(found.x, shift))

    return minimise_at


#: Scorers whose sums over rows need no more than the rows.
DIRECT = ("log_loss", "accuracy_score")


def summed_scores(scorer: Any, data: Data, test: np.ndarray, params: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """The same for rows that are not in memory, by sums over them."""
    name = getattr(getattr(scorer, "_score_func", None), "__name__", "")
    total, weight = sum_rows(score_statistic, rows_of_fold(data, test), params, name, n_jobs=n_jobs)
    return np.asarray(total / weight)


def path_scores(
    scorer: Any,
    model_at: Callable[[np.ndarray], Any],
    labelled: ArrayData,
    data: ArrayData,
    test: np.ndarray,
    params: np.ndarray,
    classes: np.ndarray,
    given: Mapping[str, Any],
) -> np.ndarray:
    """One score for each model of `params` (n, rows, p + 1), by a scorer of scikit-learn with arguments `given`.

    Log loss and accuracy of all models come from one product. Rows of no weight do not count, and neither do rows of a
    class that has none.
    """
    assert labelled.y is not None
    assert data.y is not None
    known = np.isin(labelled.y[test], classes)
    weight = None if data.weight is None or given.get("sample_weight") is None else data.weight[test]
    if weight is not None and (weight * known).any():
        known &= weight > 0
    else:
        weight = None
    test = test[known]
    X = labelled.X[test] if not sp.issparse(labelled.X) else sp.csr_array(labelled.X)[test]
    weight = None if weight is None else weight[known]
    function = getattr(scorer, "_score_func", None)
    name = getattr(function, "__name__", "")
    plain = not set(given) - {"sample_weight"} and not getattr(scorer, "_kwargs", {"": 1})
    if name in DIRECT and plain:
        total, weight_of_rows = score_statistic(Batch(X, data.y[test], weight), params, name)
        return np.asarray(total / weight_of_rows)
    rows = {key: _test_part(value, test, data.n_rows) for key, value in given.items() if key != "sample_weight"}
    if weight is not None:
        rows["sample_weight"] = weight
    y = labelled.y[test]
    if len(np.unique(y)) < len(classes) and function is not None:
        scorer = _told_of_classes(scorer, function, classes)
    return np.array([scorer(model_at(of_model), X, y, **rows) for of_model in params])


def _test_part(value: Any, test: np.ndarray, n_rows: int) -> Any:
    """The part of an argument that belongs to the test rows, where it has an entry for each row."""
    return np.asarray(value)[test] if np.ndim(value) > 0 and len(value) == n_rows else value


def _told_of_classes(scorer: Any, function: Callable[..., Any], classes: np.ndarray) -> Any:
    """The scorer with all classes named, for test rows that do not show them all."""
    takes = inspect.signature(function).parameters
    named: dict[str, Any] = {"labels": classes} if "labels" in takes else {}
    if named and "pos_label" in takes and len(classes) == 2:
        named["pos_label"] = classes[1]
    scorer = copy.copy(scorer)
    scorer._kwargs = {**named, **scorer._kwargs}
    return scorer
