"""Normal classes from rows with missing entries: the EM algorithm.

E: given the columns o that are there, the missing ones u of a row are normal with mean m_u + A (x_o - m_o),
A = C_uo C_oo^-1, and covariance C_uu - A C_ou. M: means and covariances of the rows so completed, with the covariances
of what was completed added. The likelihood of what was observed never falls. By Fisher's identity its gradient is zero
where a step changes nothing, and in coordinates in which C is the identity the step is the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._monitor import Monitor
from epicycle.data import Batch, Data
from epicycle.discriminant._whitening import SingularCovarianceError
from epicycle.stats._class_moments import ClassMoments, class_moments
from epicycle.stats._class_scatter import ClassScatter, dense_rows, scatter_of
from epicycle.stats._missing import patterns

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Structure:
    """Which covariances of the classes are equal, or zero off the diagonal."""

    name: str  # "shared", "per-class", "diagonal" or "spherical"

    def covariances(self, moments: ClassScatter) -> np.ndarray:
        """The most likely covariances of this structure: shape (1, p, p) if shared, else (K, p, p)."""
        if self.name == "shared":
            return np.asarray(moments.within().scatter / moments.weight.sum())
        C = moments.scatter / moments.weight[:, None, None]
        return np.stack([self.constrained(c) for c in C])

    def constrained(self, C: np.ndarray) -> np.ndarray:
        if self.name == "diagonal":
            return np.asarray(np.diag(np.diagonal(C)))
        if self.name == "spherical":
            return np.asarray(np.eye(len(C)) * (np.trace(C) / len(C)))
        return C


@dataclass(frozen=True)
class Completed:
    """The end of EM: moments with missing entries completed, the size of its last step, and why it ended."""

    moments: ClassScatter
    step: float
    n_iter: int
    reason: str


def _start_statistic(batch: Batch, n_classes: int) -> tuple[ClassMoments]:
    code = np.ascontiguousarray(batch.y, dtype=np.int64)
    return (class_moments(dense_rows(batch.X), code, batch.weight, n_classes),)


def completed_statistic(
    batch: Batch, mean: np.ndarray, covariance: np.ndarray, pooled: bool
) -> tuple[ClassScatter, float]:
    """(moments of the completed rows, log-likelihood of what is there given the classes)."""
    X, y = dense_rows(batch.X).copy(), np.asarray(batch.y).astype(np.int64)
    w = np.ones(len(X)) if batch.weight is None else batch.weight
    K, p = mean.shape
    spread = np.zeros((1 if pooled else K, p, p))  # of what was completed
    value = 0.0
    for there, rows in patterns(np.isnan(X)):
        gone = np.setdiff1d(np.arange(p), there)
        for g in range(len(covariance)):
            mine = rows if len(covariance) == 1 else rows[y[rows] == g]
            if not len(mine):
                continue
            C = covariance[g]
            R = X[np.ix_(mine, there)] - mean[np.ix_(y[mine], there)]
            factor, log_det = _factor(C[np.ix_(there, there)])
            Z = scipy.linalg.solve_triangular(factor, R.T, lower=True, check_finite=False)
            value -= 0.5 * float(w[mine] @ (np.sum(Z * Z, axis=0) + log_det + len(there) * _LOG_2PI))
            if not len(gone):
                continue
            half = scipy.linalg.solve_triangular(factor, C[np.ix_(there, gone)], lower=True, check_finite=False)
            X[np.ix_(mine, gone)] = mean[np.ix_(y[mine], gone)] + Z.T @ half
            uncertain = C[np.ix_(gone, gone)] - half.T @ half
            for k in np.unique(y[mine]):
                spread[(0 if pooled else k, *np.ix_(gone, gone))] += w[mine][y[mine] == k].sum() * uncertain
    moments = scatter_of(X, y, batch.weight, K, pooled)
    return moments.with_scatter(moments.scatter + spread), value


def _factor(C: np.ndarray) -> tuple[np.ndarray, float]:
    if not len(C):
        return C, 0.0
    try:
        L = np.linalg.cholesky(C)
    except np.linalg.LinAlgError:
        raise SingularCovarianceError(
            "X: with entries missing the likelihood has no maximum: a covariance becomes singular (columns depend on "
            "each other, or a class has too few rows); drop such columns, or fill the missing entries in"
        ) from None
    return L, 2.0 * float(np.sum(np.log(np.diagonal(L))))


def complete(
    data: Data,
    n_classes: int,
    structure: Structure,
    *,
    pooled: bool,
    log_prior: Callable[[np.ndarray], np.ndarray],
    tol: float,
    max_iter: int,
    monitor: Monitor,
    n_jobs: int | None,
) -> Completed:
    """Run EM from the means and variances of what is there."""
    mean, covariance = _start(data, n_classes, structure, n_jobs)
    step, reason, moments = np.inf, "max_iter", None
    iteration = 0
    for iteration in range(1, max_iter + 1):
        moments, value = engine.sum(completed_statistic, data, mean, covariance, pooled, n_jobs=n_jobs)
        new_mean = np.where(moments.weight[:, None] > 0, moments.mean, mean)
        new_covariance = structure.covariances(moments)
        step = _step(mean, covariance, new_mean, new_covariance)
        total = float(moments.weight.sum())
        prior = np.where(moments.weight > 0, log_prior(moments.weight), 0.0)
        objective = -(value + float(moments.weight @ prior)) / total
        mean, covariance = new_mean, new_covariance
        stop = monitor(iteration, mean.ravel(), objective=objective, step=step)
        if step <= tol:
            reason = "converged"
            break
        if stop:
            reason = "stopped"
            break
    assert moments is not None
    return Completed(moments, step, iteration, reason)


def _start(data: Data, n_classes: int, structure: Structure, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    (found,) = engine.sum(_start_statistic, data, n_classes, n_jobs=n_jobs)
    overall = found.over_classes()
    if not np.isfinite(overall.square).all():
        raise DataError("X: sums of squares of its columns overflow; scale them down")
    if (overall.weight == 0).any():
        raise SingularCovarianceError(
            f"X: column {int(np.argmin(overall.weight))} has no value at all; drop it, nothing can be learnt from it"
        )
    mean = np.where(found.weight > 0, found.mean, overall.mean)
    within = found.square.sum(axis=0) / overall.weight[0]
    if (within <= (16 * np.finfo(np.float64).eps * np.abs(overall.mean[0])) ** 2).any():
        raise SingularCovarianceError(
            f"X: column {int(np.argmin(within))} is constant within the classes; with entries missing elsewhere the "
            "likelihood has no maximum: drop it"
        )
    C = structure.constrained(np.diag(within))
    return mean, np.repeat(C[None], 1 if structure.name == "shared" else n_classes, axis=0)


def _step(mean: np.ndarray, covariance: np.ndarray, new_mean: np.ndarray, new_covariance: np.ndarray) -> float:
    """The largest entry of a step in coordinates in which the covariance is the identity."""
    largest = 0.0
    identity = np.eye(mean.shape[1])
    for g, C in enumerate(covariance):
        L = np.linalg.cholesky(C)
        moved = new_mean - mean if len(covariance) == 1 else (new_mean - mean)[[g]]
        of_mean = scipy.linalg.solve_triangular(L, moved.T, lower=True, check_finite=False)
        half = scipy.linalg.solve_triangular(L, new_covariance[g], lower=True, check_finite=False)
        whole = scipy.linalg.solve_triangular(L, half.T, lower=True, check_finite=False)
        largest = max(largest, float(np.abs(of_mean).max()), float(np.abs(whole - identity).max()))
    return largest
