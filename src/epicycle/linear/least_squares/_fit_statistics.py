"""Numbers about a least-squares fit as a whole: R2, F, likelihood and the criteria built on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import fdtrc

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Batch, Data
from epicycle.linalg._dependencies import Dependencies
from epicycle.linear.least_squares._covariances import Frame


def fit_statistics(
    *,
    squares: float,
    residual_squares: float,
    n_rows: int,
    rank: int,
    intercept: bool,
    log_weight: float,
    f_test: tuple[float, float] | None = None,
) -> dict[str, float]:
    """As under normal noise of variance s^2 / w_i; `f_test` (statistic, p-value) replaces that of equal variances.

    squares : weighted sum of squares of y about its mean (about zero without an intercept).
    rank : number of independent features, without the intercept.
    log_weight : sum of the logarithms of the weights.
    """
    n, d = n_rows, rank + int(intercept)
    freedom = n - d
    facts: dict[str, float] = {"rows": float(n)}
    if freedom > 0:
        facts["residual std"] = float(np.sqrt(residual_squares / freedom))
    facts["degrees of freedom"] = float(freedom)
    if squares > 0:
        facts["R2"] = 1 - residual_squares / squares
        if freedom > 0:
            facts["adjusted R2"] = 1 - (n - int(intercept)) / freedom * residual_squares / squares
    if f_test is None and rank > 0 and freedom > 0 and residual_squares > 0:
        f = (squares - residual_squares) / rank / (residual_squares / freedom)
        f_test = f, float(fdtrc(rank, freedom, f))
    if f_test is not None:
        facts["F"], facts["P>F"] = f_test
    if residual_squares > 0:
        likelihood = (log_weight - n * (np.log(2 * np.pi * residual_squares / n) + 1)) / 2
        facts["log-likelihood"] = float(likelihood)
        facts["AIC"] = float(2 * d - 2 * likelihood)
        facts["BIC"] = float(np.log(n) * d - 2 * likelihood)
    return facts


def wald_f(coef: np.ndarray, covariance: np.ndarray, freedom: float) -> tuple[float, float] | None:
    """(F, p-value) of the hypothesis that all coefficients are zero, given their covariance."""
    try:
        factor = scipy.linalg.cho_factor(covariance, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    f = float(coef @ scipy.linalg.cho_solve(factor, coef)) / len(coef)
    return f, float(fdtrc(len(coef), freedom, f))


# --------------------------------------------------------------------------------------------------------------------
# Leverages, the hat matrix, and how much every row moves a fit.
#
# H = Z B Z'W with z = (x - mean, 1) and B the inverse of the penalised second moments maps y to its fitted values.
# Its diagonal h needs B alone, so it is computed block by block, wherever the rows are; all of H only where n x n
# fits.


def leverage_batch(batch: Batch, frame: Frame) -> np.ndarray:
    h = frame.leverages(batch)
    return h if batch.weight is None else h * batch.weight


def leverages_of(data: Data, frame: Frame, n_jobs: int | None) -> Any:
    """h_i of every row."""
    return engine.map(leverage_batch, data, frame, n_jobs=n_jobs)


def rotated_batch(batch: Batch, frame: Frame) -> np.ndarray:
    """A'z of every row, with B = A A'."""
    Z = frame.rotated(batch)
    return np.column_stack([Z, np.full(len(Z), 1 / np.sqrt(frame.weight))]) if frame.intercept else Z


def hat_matrix_of(data: Data, frame: Frame, n_jobs: int | None) -> np.ndarray:
    """H, for rows in memory."""
    if not isinstance(data, ArrayData):
        raise DataError("X: the hat matrix has a row and a column for each row of X, which has to be in memory")
    n = data.n_rows
    require_memory(8.0 * n * (n + len(frame.mean)), f"the {n} x {n} hat matrix", "leverage(X) gives its diagonal")
    Z = engine.map(rotated_batch, data, frame, n_jobs=n_jobs)
    H = Z @ Z.T
    if data.weight is not None:
        H *= data.weight
    return np.asarray(H)


@dataclass(frozen=True)
class Influence:
    """One number for each row of a least-squares fit.

    leverage : diagonal of the hat matrix.
    residual : y minus its fitted value.
    studentized_residual : residual over its standard error, the noise estimated from all rows.
    deleted_residual : the same with the noise estimated without the row; Student's t with one degree of freedom less.
    cooks_distance : how far all fitted values move when the row is left out, relative to their uncertainty.
    dffits : how far the row's own fitted value moves, in standard errors.
    """

    leverage: Any
    residual: Any
    studentized_residual: Any
    deleted_residual: Any
    cooks_distance: Any
    dffits: Any


def residual_batch(batch: Batch, frame: Frame, target: int) -> np.ndarray:
    """(leverage, residual, residual times the root of its weight)."""
    r = frame.residual(batch, target)
    h = leverage_batch(batch, frame)
    return np.column_stack([h, r, r if batch.weight is None else r * np.sqrt(batch.weight)])


def influence_of(
    data: Data, frame: Frame, target: int, residual_squares: float, freedom: int, n_jobs: int | None
) -> Influence:
    """All of it in one pass."""
    table = engine.map(residual_batch, data, frame, target, n_jobs=n_jobs)
    h, r, weighted = table[:, 0], table[:, 1], table[:, 2]
    d = frame.root.shape[1] + int(frame.intercept)
    variance = residual_squares / freedom
    free = 1 - h
    studentized = weighted / np.sqrt(variance * free)
    without = (residual_squares - weighted**2 / free) / (freedom - 1) if freedom > 1 else np.nan
    deleted = weighted / np.sqrt(without * free)
    return Influence(h, r, studentized, deleted, studentized**2 * h / free / d, deleted * np.sqrt(h / free))


# --------------------------------------------------------------------------------------------------------------------
# Intervals for the mean of y at x, and for a new y at x.
#
# With V the covariance of the coefficients for z = (x - mean, 1), the fitted mean at x has variance z'Vz, and a new y
# of weight w has s^2 / w more. Where features depend on each other, only an x that depends alike has a mean that the
# rows determine; any other gets an interval of infinite length.


#: Distance of a dependent feature from what the others make of it, relative to its parts, that counts as rounding.
ROUNDING = 1e-6


class PredictionInterval(NamedTuple):
    """Predictions with the lower and upper ends of their intervals, each of the shape of `predict`."""

    prediction: Any
    lower: Any
    upper: Any


def variance_root(covariance: np.ndarray) -> np.ndarray:
    """A with A A' = covariance."""
    values, V = scipy.linalg.eigh(covariance, check_finite=False)
    return np.asarray(V * np.sqrt(np.maximum(values, 0.0)))


def interval_batch(
    batch: Batch,
    frame: Frame,
    roots: tuple[np.ndarray, ...],
    variances: np.ndarray,
    dependencies: Dependencies | None,
    quantile: float,
) -> np.ndarray:
    """(prediction, lower, upper) of every row and target, of shape (n, 3, k); `variances` of y about its mean."""
    X = batch.X
    p = len(frame.mean)
    mean = frame.level + frame.centred_times(X, frame.coef)
    half = np.empty_like(mean)
    for t, A in enumerate(roots):
        Z = frame.centred_times(X, A[:p])
        Z = Z + A[p] if frame.intercept else Z
        noise = variances[t] if batch.weight is None else variances[t] / batch.weight
        half[:, t] = quantile * np.sqrt(np.einsum("ij,ij->i", Z, Z) + noise)
    if dependencies is not None:
        half[~_estimable(X, frame.mean, dependencies)] = np.inf
    return np.stack([mean, mean - half, mean + half], axis=1)


def _estimable(X: Any, mean: np.ndarray, dependencies: Dependencies) -> np.ndarray:
    """Whether the dependent features of a row are what the others make of them."""
    kept, rest = dependencies.independent, dependencies.dependent
    C = dependencies.combination
    X = X.toarray() if sp.issparse(X) else X
    others, own = X[:, kept] - mean[kept], X[:, rest] - mean[rest]
    size = np.abs(others) @ np.abs(C) + np.abs(own) + np.abs(mean[rest]) + np.abs(mean[kept]) @ np.abs(C)
    return np.asarray((np.abs(own - others @ C) <= ROUNDING * size).all(axis=1))


def intervals_of(
    data: Data,
    frame: Frame,
    roots: tuple[np.ndarray, ...],
    variances: np.ndarray,
    dependencies: Dependencies | None,
    quantile: float,
    n_jobs: int | None,
) -> Any:
    """Of shape (n, 3, k)."""
    return engine.map(interval_batch, data, frame, roots, variances, dependencies, quantile, n_jobs=n_jobs)
