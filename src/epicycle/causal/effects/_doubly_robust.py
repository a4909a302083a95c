r"""Doubly robust estimates: AIPW and TMLE, and double machine learning of the partially linear model.

With outcome models Q_t(x) = E[Y | T = t, x] and the propensity e(x), all of other folds, the efficient influence
functions are

    ate:  Q_1 - Q_0 + t (y - Q_1)/e - (1-t)(y - Q_0)/(1-e) - tau
    att:  [t (y - Q_0) - (1-t) e/(1-e) (y - Q_0) - t tau] / P(T = 1)
    atc:  [(1-t)(Q_1 - y) + t (1-e)/e (y - Q_1) - (1-t) tau] / P(T = 0).

AIPW solves "mean zero" for tau; with ``ate`` this is the interactive model of double machine learning. TMLE moves
logit Q_t, of an outcome scaled to [0, 1], by a constant until the weighted residuals vanish, and averages the moved
predictions: its values stay in the range of the outcome. Both are consistent if Q or e is (van der Laan and Rubin 2006;
Chernozhukov et al. 2018).

The partially linear model y = tau t + g(x) + noise takes numeric treatments too: tau is the slope of y - E[y|x] on
t - E[t|x].
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from epicycle.causal.effects._estimate import Estimate, from_influence
from epicycle.causal.effects._study import Study
from epicycle.causal.effects._weighting import population_weights
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError

_NEWTON_STEPS = 100


def efficient_scores(study: Study, e: np.ndarray, Q0: np.ndarray, Q1: np.ndarray, estimand: str) -> np.ndarray:
    """The uncentred efficient scores; the effect is their sum divided by that of the target's rows."""
    t, y = study.t, study.y
    v = population_weights(t, e, estimand)
    if estimand == "att":
        return np.asarray(np.where(t == 1, y - Q0, -v * (y - Q0)))
    if estimand == "atc":
        return np.asarray(np.where(t == 1, v * (y - Q1), Q1 - y))
    return np.asarray(Q1 - Q0 + np.where(t == 1, v * (y - Q1), -v * (y - Q0)))


def augmented_weighting(
    study: Study, e: np.ndarray, Q0: np.ndarray, Q1: np.ndarray, estimand: str, tol: float
) -> Estimate:
    """AIPW."""
    scores, target = efficient_scores(study, e, Q0, Q1, estimand), study.target(estimand)
    mass = float(study.w @ target)
    tau = float(study.w @ scores) / mass
    return from_influence(study, tau, (scores - tau * target) * study.size / mass, tol)


def targeted_learning(
    study: Study, e: np.ndarray, Q0: np.ndarray, Q1: np.ndarray, estimand: str, tol: float
) -> Estimate:
    """TMLE with the clever covariate as a weight."""
    t, y, w = study.t, study.y, study.w
    low, span = float(y.min()), float(np.ptp(y))
    if span == 0:
        return augmented_weighting(study, e, y, y, estimand, tol)
    target = study.target(estimand)
    H = population_weights(t, e, estimand)
    residual, moved = 0.0, []
    for arm, Q in ((0.0, Q0), (1.0, Q1)):
        if (estimand, arm) in (("att", 1.0), ("atc", 0.0)):  # this arm's own outcomes are the target
            moved.append(y)
            continue
        rows = t == arm
        q = logit(np.clip((Q - low) / span, 1e-4, 1 - 1e-4))
        shift, left = _shift(q[rows], (y[rows] - low) / span, (w * H)[rows])
        residual = max(residual, left)
        moved.append(low + span * expit(q + shift))
    mass = float(w @ target)
    tau = float((w * target) @ (moved[1] - moved[0])) / mass
    scores = efficient_scores(study, e, moved[0], moved[1], estimand)
    found = from_influence(study, tau, (scores - tau * target) * study.size / mass, tol)
    if residual > tol:
        found.certificate = Certificate(
            "moment condition", residual, tol, "the targeted residuals have weighted mean zero"
        )
    return found


def _shift(q: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """(eps, what is left) with sum weight (y - expit(q + eps)) = 0, by Newton's method between bounds."""
    weight = weight / weight.sum()
    low, high, eps = -40.0, 40.0, 0.0
    for _ in range(_NEWTON_STEPS):
        p = expit(q + eps)
        g = float(weight @ (y - p))
        if abs(g) <= 1e-14:
            break
        low, high = (eps, high) if g > 0 else (low, eps)
        step = eps + g / max(float(weight @ (p * (1 - p))), 1e-300)
        eps = step if low < step < high else (low + high) / 2
    return eps, abs(g)


def partially_linear(study: Study, treatment: np.ndarray, outcome: np.ndarray, tol: float) -> Estimate:
    """The slope of the outcome's residuals on the treatment's; both arguments are cross-fitted predictions."""
    v, u = study.t - treatment, study.y - outcome
    moment = float(study.w @ v**2)
    if moment <= 1e-12 * float(study.w @ (study.t - np.average(study.t, weights=study.w)) ** 2):
        raise DataError("treatment: the covariates determine it, so that no variation is left to learn an effect from")
    tau = float(study.w @ (v * u)) / moment
    psi = v * (u - tau * v) * study.size / moment
    return from_influence(study, tau, psi, tol, propensity=treatment if study.binary else None)
