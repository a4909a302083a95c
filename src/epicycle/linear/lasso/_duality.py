"""The lasso and the elastic net: objective, optimality, dual, gap, screening.

With row weights v_i >= 0 that sum to one, columns x_j and y taken about their weighted means (about zero without an
intercept), and <a, b> = sum_i v_i a_i b_i,

    minimise  P(w) = 1/2 |y - Xw|^2 + sum_j l1_j |w_j| + 1/2 sum_j l2_j w_j^2          (w >= 0 where asked for),
    l1_j = alpha l1_ratio f_j,   l2_j = alpha (1 - l1_ratio) f_j,   penalty factors f_j >= 0.

Optimality: with r = y - Xw and c_j = <x_j, r>,

    |c_j| <= l1_j  where w_j = 0,        c_j = l1_j sign(w_j) + l2_j w_j  elsewhere.

The dual problem, over residual-like theta:

    maximise  D(theta) = <y, theta> - 1/2 |theta|^2 - sum_{l2_j > 0} (|<x_j, theta>| - l1_j)_+^2 / (2 l2_j)
    subject to |<x_j, theta>| <= l1_j wherever l2_j = 0          (one-sided, without the modulus, for w >= 0).

D <= P everywhere, and theta = r is optimal when w is. A scaled residual theta = s r, 0 < s <= 1, is always feasible, so
P(w) - D(s r) bounds the distance of P(w) from its minimum: the duality gap, and the certificate. Columns with f_j = 0
ask for <x_j, theta> = 0; they are made orthogonal to r by an exact least-squares step, as the intercept is by centring.

D is strongly concave with constant 1: |theta - theta*|^2 <= 2 (P(w) - D(theta)) =: radius^2 for every feasible theta
and every w. Hence |<x_j, theta>| + radius |x_j| < l1_j proves w*_j = 0 (gap-safe sphere: Fercoq, Gramfort and Salmon
2015): the column leaves the problem, and what is left has the same minimum, so later gaps stay certificates of all.

Correlations need not be kept up to date for that: |<x_j, r>| <= |<x_j, r'>| + |x_j| |r - r'|, so a column whose old
correlation is far enough below l1_j is neither a threat to feasibility nor worth reading again.
"""

from __future__ import annotations

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.optim._penalties import ElasticNet

#: Unpenalised columns are solved for together; their Gram matrix has to fit.
MAX_UNPENALISED = 5000


def penalty_of(alpha: float, l1_ratio: float, factors: np.ndarray, positive: bool) -> ElasticNet:
    """alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2) with a factor for every column."""
    return ElasticNet(alpha * l1_ratio * factors, alpha * (1 - l1_ratio) * factors, positive=positive)


def penalty_factors(penalty_weights: object, p: int, positive: bool) -> np.ndarray:
    """The factors f_j, ones by default."""
    if penalty_weights is None:
        return np.ones(p)
    factors = np.asarray(penalty_weights, dtype=np.float64)
    if factors.shape != (p,):
        raise ParameterError(f"penalty_weights has shape {factors.shape}; expected one number for each of {p} features")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError("penalty_weights: expected finite numbers >= 0")
    free = int(np.count_nonzero(factors == 0))
    if free and positive:
        raise ParameterError("penalty_weights: a feature without penalty (0) cannot be combined with positive=True")
    if free > MAX_UNPENALISED:
        raise ParameterError(
            f"penalty_weights: {free} features have no penalty (0); expected at most {MAX_UNPENALISED}"
        )
    return factors


def smallest_alpha_of_zero(correlations: np.ndarray, l1_ratio: float, factors: np.ndarray, positive: bool) -> float:
    """The smallest alpha at which every penalised coefficient is zero: max_j |c_j| / (l1_ratio f_j).

    `correlations` are those with y after the unpenalised columns are fitted.
    """
    penalised = factors > 0
    c = correlations[penalised]
    size = np.maximum(c, 0.0) if positive else np.abs(c)
    return float((size / factors[penalised]).max(initial=0.0)) / l1_ratio


def gap_certificate(gap: float, total: float, tol: float) -> Certificate:
    """The duality gap relative to `total`, half the weighted mean square of y about its mean."""
    relative = 0.0 if gap <= 0 else gap / total if total > 0 else np.inf
    meaning = f"the objective is within {relative:.1e} of its minimum, relative to half the mean square of y"
    return Certificate("duality gap", relative, tol, meaning)


def penalty_in_words(
    alpha: float, l1_ratio: float, penalty_weights: object, positive: bool, *, bound: float | None = None
) -> str:
    """One line that names the penalty and its strength, or the bound."""
    if bound is not None:
        line = f"|w|_1 <= {bound:g}"
    elif l1_ratio == 1:
        line = f"{alpha:g} |w|_1"
    else:
        line = f"{alpha:g} ({l1_ratio:g} |w|_1 + {(1 - l1_ratio) / 2:g} |w|^2)"
    extra = ", with a factor for each feature" if penalty_weights is not None else ""
    return f"{line}{extra}{', w >= 0' if positive else ''}"
