r"""Difference of means, and regression with interactions (Lin 2013).

A least-squares fit in each arm, y = a_t + x'b_t, compared at the mean m of the covariates in the target population:

    tau = (a_1 + m'b_1) - (a_0 + m'b_0).

With z = (1, x), z_m = (1, m) and residuals r its influence function is, for row i of arm t with sign s = 2t - 1,

    psi_i = s z_m' E[1{t} z z']^-1 z_i r_i + (x_i - m)'(b_1 - b_0) 1{i in target} / P(target):

the first part is the sandwich of least squares, the second the sampling of m. The same tau is a difference of weighted
means, with weights z_m' (Z_t'Z_t)^-1 z_i that sum to one and balance the covariates exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.causal.effects._estimate import Estimate, from_influence
from epicycle.causal.effects._study import Study
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.stats._summary import central_quantile


def difference_of_means(study: Study, tol: float) -> Estimate:
    """The difference of the mean outcomes of the arms, with Neyman's variance."""
    means, variances = [], []
    for arm in (0.0, 1.0):
        y, w = study.y[study.t == arm], study.w[study.t == arm]
        mean, size = float(np.average(y, weights=w)), float(w.sum())
        if size <= 1:
            raise DataError("treatment: an arm has a single row; its variance needs two")
        means.append(mean)
        variances.append(float(w @ (y - mean) ** 2) / (size - 1) / size)
    certificate = Certificate(
        "closed form",
        0.0,
        tol,
        "the effect is the difference of two means; it is causal where treatment was randomised",
    )
    return Estimate(means[1] - means[0], sum(variances), certificate, weights=np.ones_like(study.y))


@dataclass
class LinearEffect:
    """Row effects a + (x - centre)'b, with coef = (a, b) and its covariance."""

    coef: np.ndarray
    covariance: np.ndarray
    centre: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._design(X) @ self.coef)

    def half_widths(self, X: np.ndarray, level: float) -> np.ndarray:
        Z = self._design(X)
        return np.asarray(central_quantile(level, None) * np.sqrt(np.einsum("ij,jk,ik->i", Z, self.covariance, Z)))

    def _design(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(X)), X - self.centre])


def interacted_regression(study: Study, estimand: str, tol: float) -> Estimate:
    """Lin's estimator; with ``estimand="cate"`` the model of row effects is returned too."""
    X = study.dense()
    target = study.target(estimand) * study.w
    m = target @ X / target.sum()
    Z = np.column_stack([np.ones(len(X)), X - m])  # the mean of the target is the origin
    n = study.size
    influence = np.zeros(len(X))
    weights = np.zeros(len(X))
    coefs, covariance = [], np.zeros((Z.shape[1], Z.shape[1]))
    for arm, sign in ((0.0, -1.0), (1.0, 1.0)):
        rows = study.t == arm
        Za, ya, wa = Z[rows], study.y[rows], study.w[rows]
        inverse, rank = _inverse_moments(Za, wa)
        if wa.sum() <= rank:
            raise DataError(
                f"X: the {'treated' if arm else 'control'} rows ({wa.sum():g}) do not exceed the {rank} coefficients; "
                "use fewer covariates or a method with a penalised outcome_model"
            )
        b = inverse @ (Za.T @ (wa * ya))
        b += inverse @ (Za.T @ (wa * (ya - Za @ b)))  # one step of refinement
        r = (ya - Za @ b) * np.sqrt(wa.sum() / (wa.sum() - rank))  # degrees of freedom, as in HC1
        influence[rows] += sign * n * (Za @ inverse[0]) * r
        weights[rows] = Za @ inverse[0] * n
        scores = Za * r[:, None]
        covariance += inverse @ (scores.T @ (scores * wa[:, None])) @ inverse
        coefs.append(b)
    d = coefs[1] - coefs[0]
    influence += study.target(estimand) * ((X - m) @ d[1:]) * n / target.sum()
    estimate = from_influence(study, float(d[0]), influence, tol, weights=weights)
    if estimand == "cate":
        estimate.model = LinearEffect(d, covariance, m)
    return estimate


def _inverse_moments(Z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, int]:
    """(pseudo-inverse of Z'WZ, rank) with Z = (1, X - m).

    It is taken about the mean of these rows, columns scaled to unit length: a column that is constant in them then has
    the coefficient 0, and is not mistaken for a part of the intercept.
    """
    mean = w @ Z / w.sum()
    mean[0] = 0.0
    C = Z - mean
    C[:, np.abs(C).max(axis=0) <= 1e-12 * np.abs(Z).max(axis=0)] = 0.0
    scale = np.sqrt(w @ C**2)
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh((C / scale).T @ (C / scale * w[:, None]))
    kept = values > 1e-12 * max(values[-1], 1e-300)
    half = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    half[0] -= mean @ half  # from the mean of the rows to m
    return half @ half.T, int(kept.sum())
