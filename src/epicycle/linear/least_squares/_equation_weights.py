"""The weights w_ik with which observation equations are combined: one matrix for each batch of rows, from the rows.

z = (x - mean) / scale stands for the features about their mean (about zero without an intercept), in units of their
spread; with an intercept there is one more unknown, and its weight comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.data import Batch

__all__ = ["RULES", "Combination", "combine"]

#: Deviations below this many spreads count as none: a tie with the mean must not be decided by rounding.
TIE = 1e-9
#: Laplace left out the equations in which an unknown had a small coefficient.
SMALL = 0.5


@dataclass(frozen=True)
class Combination:
    """How rows are combined: a rule by name, a function of X, or a matrix with one row for each row of the data."""

    rule: str | Callable[[np.ndarray], np.ndarray] | np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    intercept: bool


def _least_squares(X: np.ndarray, z: np.ndarray, intercept: bool) -> np.ndarray:
    """Gauss: every equation times its coefficient."""
    return X


def _signs(X: np.ndarray, z: np.ndarray, intercept: bool) -> np.ndarray:
    """Every equation with the sign of the coefficient: above the mean less below it."""
    return np.where(np.abs(z) > TIE, np.sign(z), 0.0)


def _laplace(X: np.ndarray, z: np.ndarray, intercept: bool) -> np.ndarray:
    """Laplace 1787: added, subtracted or left out, as the coefficient is large, largely negative or small."""
    return np.where(np.abs(z) > SMALL, np.sign(z), 0.0)


def _mayer(X: np.ndarray, z: np.ndarray, intercept: bool) -> np.ndarray:
    """Mayer 1750: disjoint groups, each summed. A row goes to the unknown on which it bears most; what bears on none,
    being below the mean of all, is the group of the intercept. Without one, a row goes in with its sign."""
    n, p = z.shape
    out = np.zeros((n, p))
    rows = np.arange(n)
    most = (z if intercept else np.abs(z)).argmax(axis=1)
    bears = z[rows, most]
    out[rows, most] = np.where(bears > TIE, 1.0, 0.0) if intercept else np.where(np.abs(bears) > TIE, np.sign(bears), 0)
    return out


RULES: dict[str, Callable[[np.ndarray, np.ndarray, bool], np.ndarray]] = {
    "laplace": _laplace,
    "least_squares": _least_squares,
    "mayer": _mayer,
    "sign": _signs,
}


def combine(batch: Batch, how: Combination) -> tuple[np.ndarray, np.ndarray]:
    """(A, W): the coefficients (x - mean, 1) of the unknowns and the weights of the equations, both (n, d)."""
    X = batch.X.toarray() if sp.issparse(batch.X) else np.asarray(batch.X, dtype=np.float64)
    n = len(X)
    centred = X - how.mean
    ones = np.ones((n, int(how.intercept)))
    A = np.hstack([centred, ones])
    if isinstance(how.rule, str):
        z = np.divide(centred, how.scale, out=np.zeros_like(centred), where=how.scale > 0)
        W = RULES[how.rule](centred, z, how.intercept)
        if how.rule == "mayer" and how.intercept:
            return A, np.hstack([W, 1.0 - W.sum(axis=1, keepdims=True)])
        return A, np.hstack([W, ones])
    if isinstance(how.rule, np.ndarray):
        W = how.rule[batch.start : batch.start + n]
    else:
        W = np.asarray(how.rule(X), dtype=np.float64)
    if W.shape != A.shape:
        raise DataError(
            f"weights: expected shape {A.shape} for {n} rows, one column for each of the {A.shape[1]} unknowns"
            f"{' (the intercept last)' if how.intercept else ''}, got {W.shape}"
        )
    if not np.isfinite(W).all():
        raise DataError("weights: expected finite numbers")
    return A, W
