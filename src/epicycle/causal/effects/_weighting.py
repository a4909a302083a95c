r"""Weighting by the propensity score e(x) = P(T = 1 | x), and strata of it.

A population h(x) times that of the data is compared: h = 1 for all rows ("ate"), e for the treated ("att"), 1 - e for
the controls ("atc") and e (1 - e) where the arms overlap most ("ato", Li, Morgan and Zaslavsky 2018). Treated rows get
the weight h/e, control rows h/(1-e), and

    tau = sum t h/e y / sum t h/e - sum (1-t) h/(1-e) y / sum (1-t) h/(1-e)

with normalised ("stabilised") weights; without, both sums are divided by sum h (Horvitz and Thompson).

Where e = 1/(1 + exp(-x'beta)) solves sum_i s_i(beta) = 0, with A = -E[ds/dbeta], the influence function of tau is
psi_i + s_i' A^-1 E[dpsi/dbeta]: estimating e lowers the variance. The scores are s = (t - e) x for the likelihood and
s = (t/e - (1-t)/(1-e)) x for covariate balancing (CBPS, Imai and Ratkovic 2014, just identified), whose weights
balance the covariates exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from epicycle.causal.effects._estimate import Estimate, from_influence
from epicycle.causal.effects._study import Study
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, OverlapWarning


def population_weights(t: np.ndarray, e: np.ndarray, estimand: str) -> np.ndarray:
    """h/e for treated and h/(1-e) for control rows, also where e is 0 or 1 and the quotient is not."""
    one = np.ones_like(e)
    with np.errstate(divide="ignore"):
        pairs = {"att": (one, e / (1 - e)), "atc": ((1 - e) / e, one), "ato": (1 - e, e)}
        treated, control = pairs.get(estimand, (1 / e, 1 / (1 - e)))
    weights = np.asarray(np.where(t == 1, treated, control))
    if n_certain := int(np.count_nonzero(~np.isfinite(weights))):
        raise DataError(
            f"X: {n_certain} rows have an estimated propensity of 0 for their own arm, so that weights are infinite; "
            "expected propensities between 0 and 1; set clip above 0, or trim"
        )
    return weights


def population(e: np.ndarray, estimand: str) -> np.ndarray:
    """h(x): the density of the target population relative to that of the data."""
    return np.asarray({"att": e, "atc": 1 - e, "ato": e * (1 - e)}.get(estimand, np.ones_like(e)))


def _weight_slopes(t: np.ndarray, e: np.ndarray, estimand: str) -> tuple[np.ndarray, np.ndarray]:
    """(d weight / d x'beta, d h / d x'beta) for a logistic e."""
    v, zero = e * (1 - e), np.zeros_like(e)
    with np.errstate(divide="ignore"):
        up, down = e / (1 - e), -(1 - e) / e
    treated = {"ate": down, "att": zero, "atc": down, "ato": -v}[estimand]
    control = {"ate": up, "att": up, "atc": zero, "ato": v}[estimand]
    slope_of_h = {"ate": 0 * e, "att": v, "atc": -v, "ato": v * (1 - 2 * e)}[estimand]
    return np.where(t == 1, treated, control), slope_of_h


@dataclass
class LogisticPropensity:
    """A propensity score exp(x'beta) / (1 + exp(x'beta)) with what its estimation adds to an influence function.

    scores : s_i of every row, (n, p + 1).
    bread : A = -E[ds / dbeta].
    residual : the largest |sum s|, relative; what the solver left.
    """

    e: np.ndarray
    Z: np.ndarray
    scores: np.ndarray
    bread: np.ndarray
    residual: float


def logistic_propensity(study: Study, e: np.ndarray) -> LogisticPropensity:
    """The maximum-likelihood propensity with these fitted values."""
    Z = _design(study)
    bread = Z.T @ (Z * (study.w * e * (1 - e))[:, None]) / study.size
    return LogisticPropensity(e, Z, Z * (study.t - e)[:, None], bread, 0.0)


def balancing_propensity(study: Study, estimand: str, tol: float, max_iter: int) -> LogisticPropensity:
    """The logistic propensity whose weights give both arms the same means (for "att" and "atc" those of one arm).

    The equations are the gradient of the convex function E[t exp(-f) + (1-t) exp(f) - (2t - 1) f] of f = x'beta
    ("ate"), E[(1-t) exp(f) - t f] ("att") or E[t exp(-f) + (1-t) f] ("atc"): Newton's method with halved steps.
    """
    Z = _design(study)
    beta = np.zeros(Z.shape[1])
    treated, controls = float(study.w @ study.t), float(study.w @ (1 - study.t))
    beta[0] = np.log(treated) - np.log(controls) if estimand != "ate" else 0.0
    value, gradient, hessian = _tailored_loss(study, Z, beta, estimand)
    for _ in range(max_iter):
        if np.abs(gradient).max() <= tol:
            break
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size = 1.0
        for _halving in range(60):
            found = _tailored_loss(study, Z, beta - size * step, estimand)
            if found[0] <= value - 1e-4 * size * float(gradient @ step) + 1e-15 * abs(value):
                break
            size /= 2
        beta = beta - size * step
        value, gradient, hessian = found
    residual = float(np.abs(gradient).max())
    if not residual <= max(tol, 1e-6) or np.abs(Z @ beta).max() > 500:
        raise DataError(
            f"X: no logistic weights balance the covariates (largest difference of means {residual:.2g} standard "
            f"deviations, in {worst_name(study, gradient)}): the arms do not overlap there"
        )
    e = expit(Z @ beta)
    scores = Z * _balance_residual(study.t, e, estimand)[:, None]
    return LogisticPropensity(e, Z, scores, hessian, residual)


def worst_name(study: Study, gradient: np.ndarray) -> str:
    """The covariate with the largest entry of a gradient whose first entry is that of the intercept."""
    return study.names[int(np.abs(gradient[1:]).argmax())] if len(gradient) > 1 else "the intercept"


def _balance_residual(t: np.ndarray, e: np.ndarray, estimand: str) -> np.ndarray:
    odds = e / (1 - e)
    if estimand == "ate":
        return np.asarray(np.where(t == 1, 1 + 1 / odds, -(1 + odds)))
    return np.asarray(np.where(t == 1, 1.0, -odds) if estimand == "att" else np.where(t == 1, 1 / odds, -1.0))


def _tailored_loss(
    study: Study, Z: np.ndarray, beta: np.ndarray, estimand: str
) -> tuple[float, np.ndarray, np.ndarray]:
    t, w = study.t, study.w / study.size
    f = Z @ beta
    with np.errstate(over="ignore"):
        up = np.where(t == 1, 0.0 if estimand == "att" else np.exp(-f), 0.0 if estimand == "atc" else np.exp(f))
    linear = {"ate": (2 * t - 1), "att": t, "atc": -(1 - t)}[estimand]
    if not np.isfinite(up).all():
        return np.inf, np.full(len(beta), np.inf), np.eye(len(beta))
    value = float(w @ (up - linear * f))
    slope = np.where(t == 1, -up, up) - linear
    return value, Z.T @ (w * slope), Z.T @ (Z * (w * up)[:, None])


def _design(study: Study) -> np.ndarray:
    """(1, standardised covariates); a constant column stays zero."""
    X = study.dense()
    mean = study.w @ X / study.size
    scale = np.sqrt(study.w @ (X - mean) ** 2 / study.size)
    scale[scale == 0] = 1.0
    return np.column_stack([np.ones(len(X)), (X - mean) / scale])


def weighted_difference(
    study: Study,
    e: np.ndarray,
    estimand: str,
    *,
    stabilize: bool,
    tol: float,
    model: LogisticPropensity | None = None,
    free: np.ndarray | None = None,
) -> Estimate:
    """The difference of weighted means; `model` adds the estimation of e, `free` are rows that were not clipped."""
    t, y, w = study.t, study.y, study.w
    v = population_weights(t, e, estimand)
    h = population(e, estimand)
    sign = np.where(t == 1, 1.0, -1.0)
    n = study.size
    if stabilize:
        means = [float(np.average(y[t == a], weights=(w * v)[t == a])) for a in (0.0, 1.0)]
        mass = [float((w * v)[t == a].sum()) / n for a in (0.0, 1.0)]
        r = np.where(t == 1, (y - means[1]) / mass[1], (means[0] - y) / mass[0])
        tau, psi = means[1] - means[0], v * r
    else:
        mass_h = float(w @ h) / n
        tau = float(w @ (sign * v * y)) / n / mass_h
        psi = (sign * v * y - tau * h) / mass_h
    if model is not None:
        dv, dh = _weight_slopes(t, e, estimand)
        slope = dv * r if stabilize else (sign * dv * y - tau * dh) / mass_h
        if free is not None:
            slope = slope * free
        g = model.Z.T @ (w * slope) / n
        psi = psi + model.scores @ np.linalg.lstsq(model.bread, g, rcond=None)[0]
    return from_influence(study, tau, psi, tol, weights=v, propensity=e)


def stratified_difference(
    study: Study, strata: np.ndarray, estimand: str, what: str, propensity: np.ndarray | None = None
) -> Estimate:
    """Differences of means within strata, averaged by the strata's shares of the target population.

    The variance is the sum over strata of share^2 (s1^2/n1 + s0^2/n0) + share (difference - effect)^2 / n: the second
    part is that of the shares, which are those of a sample where effects differ between strata. Strata without two rows
    of each arm are left out.
    """
    k = int(strata.max()) + 1
    sums = {}
    for a in (0.0, 1.0):
        rows = study.t == a
        w, y, s = study.w[rows], study.y[rows], strata[rows]
        size = np.bincount(s, w, k)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(s, w * y, k) / size
            spread = np.bincount(s, w * (y - mean[s]) ** 2, k) / (size - 1) / size
        sums[a] = size, mean, spread
    (n0, m0, v0), (n1, m1, v1) = sums[0.0], sums[1.0]
    usable = (n0 > 1) & (n1 > 1)
    if not usable.any():
        raise DataError(f"X: no {what} has two treated and two control rows; the arms do not overlap")
    target = np.bincount(strata, study.w * study.target(estimand), k)
    share = np.where(usable, target, 0.0) / target[usable].sum()
    left_out = 1 - float(target[usable].sum() / target.sum())
    effect = float(share[usable] @ (m1 - m0)[usable])
    variance = float(share[usable] ** 2 @ (v1 + v0)[usable])
    variance += float(share[usable] @ ((m1 - m0)[usable] - effect) ** 2) / float(target[usable].sum())
    certificate = Certificate("closed form", 0.0, 0.0, f"the effect is the average of the differences in each {what}")
    size_of_own = np.where(study.t == 1, n1[strata], n0[strata])
    weights = np.where(usable[strata], share[strata] / np.maximum(size_of_own, 1.0), 0.0) * study.size
    found = Estimate(effect, variance, certificate, weights=weights, propensity=propensity)
    found.facts = {"strata": float(usable.sum()), "left_out": left_out}
    if left_out > 0:
        found.notices.append(
            OverlapWarning(
                f"{left_out:.1%} of the target rows are in a {what} without two rows of each arm and are left out: the "
                "effect is that of the others"
            )
        )
    return found


def quantile_strata(e: np.ndarray, w: np.ndarray, n_strata: int) -> np.ndarray:
    """The number of each row's stratum: strata of equal weight w (0 beside the target), equal scores in one stratum."""
    _, which = np.unique(e, return_inverse=True)
    mass = np.bincount(which, weights=w)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    # More strata than scores are as many as these.
    return np.unique(np.minimum(np.floor(middle * float(n_strata)), n_strata - 1.0), return_inverse=True)[1][which]
