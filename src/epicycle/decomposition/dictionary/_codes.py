"""Sparse codes of rows for a dictionary that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle._native import decomposition as native
from epicycle.core._exceptions import ParameterError
from epicycle.data import Batch

ALGORITHMS = ("lasso_lars", "lasso_cd", "lars", "omp", "threshold")
TOLERANCE = 1e-8  # of the duality gap of a code, relative to half its squared row


@dataclass(frozen=True)
class Coding:
    """The coding of rows: by which algorithm, with how many atoms or which penalty."""

    algorithm: str
    count: int
    alpha: float
    positive: bool
    max_iter: int
    split: bool = False


def coding_of(
    algorithm: str,
    n_nonzero: int | None,
    alpha: float | None,
    shape: tuple[int, int],
    *,
    positive: bool,
    max_iter: int,
    split: bool = False,
) -> Coding:
    """The coding for a dictionary of this shape; a tenth of the features, and a penalty of 1, where nothing is said."""
    refuse_signs(algorithm, positive)
    k, p = shape
    count = min(max(p // 10, 1), k) if n_nonzero is None else min(int(n_nonzero), k)
    return Coding(algorithm, count, 1.0 if alpha is None else float(alpha), bool(positive), int(max_iter), split)


def refuse_signs(algorithm: str, positive: bool) -> None:
    """Least angles and matching pursuit choose signs as they come."""
    if positive and algorithm in ("lars", "omp"):
        raise ParameterError(f"Positive constraint not supported for '{algorithm}' coding method.")


def squares_of(X: Any) -> np.ndarray:
    """x'x of every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.square(np.asarray(X, dtype=np.float64)).sum(axis=1))


def products_of(X: Any, D: np.ndarray) -> np.ndarray:
    """X D', row by row in memory."""
    found = X @ D.T if sp.issparse(X) else np.asarray(X, dtype=np.float64) @ D.T
    return np.ascontiguousarray(found, dtype=np.float64)


def codes_from(
    G: np.ndarray, C: np.ndarray, squares: np.ndarray, coding: Coding, start: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """(codes, the largest duality gap over half the squared row) from G = DD', C = XD' and the squares of the rows."""
    if coding.algorithm == "threshold":
        kept = np.maximum(np.abs(C) - coding.alpha, 0.0)
        found = kept * np.sign(C)
        return (np.maximum(found, 0.0) if coding.positive else found), 0.0
    if coding.algorithm in ("lars", "omp"):
        return native.greedy_codes(G, C, coding.count, coding.algorithm == "lars"), 0.0
    W = np.zeros_like(C) if start is None else np.array(start, dtype=np.float64, order="C")
    gaps = native.lasso_codes(G, C, squares, coding.alpha, coding.positive, coding.max_iter, TOLERANCE, W)
    some = squares > 0
    return W, float((2 * gaps[some] / squares[some]).max(initial=0.0))


def codes_of_batch(batch: Batch, D: np.ndarray, coding: Coding) -> np.ndarray:
    """Codes of rows, and in a last column the largest gap among them."""
    W, gap = codes_from(D @ D.T, products_of(batch.X, D), squares_of(batch.X), coding)
    if coding.split:
        W = np.hstack([np.maximum(W, 0.0), -np.minimum(W, 0.0)])
    return np.column_stack([W, np.full(len(W), gap)])


def plain_codes_of_batch(batch: Batch, D: np.ndarray, coding: Coding) -> np.ndarray:
    """Codes of rows in the type of X."""
    return codes_of_batch(batch, D, coding)[:, :-1].astype(batch.X.dtype)
