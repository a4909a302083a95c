r"""Entropy balancing (Hainmueller 2012): weights nearest to equal ones that give an arm the means of the target.

    minimise  sum_i v_i log v_i   subject to   sum_i v_i = 1,  sum_i v_i x_i = m.

The weights are v_i = exp(x_i'beta) / sum exp(x_j'beta), where beta minimises log sum_i exp((x_i - m)'beta), the convex
dual, whose gradient is the imbalance. With r = y - mu, A = E[v (x-m)(x-m)'], c = E[v r (x-m)] and gamma = A^-1 c, the
weighted mean mu has the influence function v (r - gamma'(x - m)) / E[v] + gamma' IF(m).
"""

from __future__ import annotations

import numpy as np

from epicycle.causal.effects._estimate import Estimate, from_influence
from epicycle.causal.effects._study import Study
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError


def entropy_balanced(study: Study, estimand: str, tol: float, max_iter: int) -> Estimate:
    """The difference of the means of arms that entropy weights balance to the target population."""
    X = study.dense()
    n, target = study.size, study.target(estimand)
    share = float(study.w @ target) / n
    m = (study.w * target) @ X / n / share
    D = X - m
    scale = np.sqrt(study.w @ (X - study.w @ X / n) ** 2 / n)
    D /= np.where(scale > 0, scale, 1.0)
    weights, influence, means, imbalance, steps = np.zeros(len(X)), np.zeros(len(X)), [], 0.0, 0
    for arm, sign in ((0.0, -1.0), (1.0, 1.0)):
        rows = study.t == arm
        w, y, d = study.w[rows], study.y[rows], D[rows]
        itself = (estimand, arm) in (("att", 1.0), ("atc", 0.0))
        if itself:
            v, gamma = np.ones(len(y)), np.zeros(D.shape[1])
        else:
            v, left, count = _dual(d, w, tol, max_iter, study, arm)
            imbalance, steps = max(imbalance, left), steps + count
        mass = float(w @ v) / n
        mean = float(np.average(y, weights=w * v))
        if not itself:
            A = d.T @ (d * (w * v)[:, None])
            gamma = np.linalg.lstsq(A, d.T @ (w * v * (y - mean)), rcond=None)[0]
        influence[rows] += sign * v * (y - mean - d @ gamma) / mass
        influence += sign * target * (D @ gamma) / share
        weights[rows] = v / mass
        means.append(mean)
    estimate = from_influence(study, means[1] - means[0], influence, tol, weights=weights)
    estimate.facts = {"steps": float(steps)}
    estimate.certificate = Certificate(
        "imbalance",
        imbalance,
        max(tol, 1e-10),
        "the weighted means of the covariates are those of the target population, to so many standard deviations",
    )
    return estimate


def _dual(
    d: np.ndarray, w: np.ndarray, tol: float, max_iter: int, study: Study, arm: float
) -> tuple[np.ndarray, float, int]:
    """(weights, largest imbalance, steps) of an arm whose rows are d = x - m."""
    beta = np.zeros(d.shape[1])
    shares, value = _shares(d, w, beta)
    step_count = 0
    for step_count in range(1, max_iter + 1):  # noqa: B007
        gradient = d.T @ shares
        if np.abs(gradient).max(initial=0.0) <= tol:
            break
        hessian = d.T @ (d * shares[:, None]) - np.outer(gradient, gradient)
        if not np.isfinite(hessian).all():
            raise DataError(
                "X: weights that balance the covariates leave the range of numbers; expected arms that overlap"
            )
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        size, slope = 1.0, float(gradient @ step)
        for _halving in range(60):
            found, lower = _shares(d, w, beta - size * step)
            if lower <= value - 1e-4 * size * slope + 1e-14 * max(abs(value), 1.0):
                break
            size /= 2
        beta, shares, value = beta - size * step, found, lower
    left = np.abs(d.T @ shares)
    largest = float(left.max(initial=0.0))
    if largest > max(tol, 1e-6):
        name = study.names[int(left.argmax())]
        raise DataError(
            f"X: no weights of the {'treated' if arm else 'control'} rows reach the means of the target population; "
            f"furthest away is {name}, by {largest:.2g} standard deviations: there the arms do not overlap"
        )
    return shares / w * w.sum(), largest, step_count


def _shares(d: np.ndarray, w: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, float]:
    f = d @ beta
    top = float(f.max())
    v = w * np.exp(f - top)
    total = float(v.sum())
    return v / total, top + float(np.log(total / w.sum()))
