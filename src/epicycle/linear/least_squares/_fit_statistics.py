"""Numbers about a least-squares fit as a whole: R2, F, likelihood and the criteria built on it."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.special import fdtrc

__all__ = ["fit_statistics", "wald_f"]


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
