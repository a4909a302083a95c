"""From decision values to probabilities: Platt's sigmoid, a monotone step function, and coupling of pairs.

Platt: p = 1 / (1 + exp(A f + B)) with targets (n1 + 1) / (n1 + 2) and 1 / (n0 + 2) in the place of 1 and 0, by Newton's
method with a line search, written so that nothing overflows (Lin, Lin and Weng, 2007). Coupling: the distribution p
that agrees best with all pairs, min sum_ij (r_ji p_i - r_ij p_j)^2 (Wu, Lin and Weng, 2004, second method).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

Array = np.ndarray


def platt(f: Array, positive: Array, weight: Array | None = None) -> tuple[float, float]:
    """(A, B) of the sigmoid for decision values `f` of rows that are `positive` or not."""
    w = np.ones(len(f)) if weight is None else weight
    up, down = float(w[positive].sum()), float(w[~positive].sum())
    # Targets off 0 and 1 (Platt 1999): the maximum a posteriori for a uniform prior, without which A may be infinite.
    target = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))
    A, B = 0.0, float(np.log((down + 1) / (up + 1)))

    def value(a: float, b: float) -> float:
        z = a * f + b
        return float(w @ (np.logaddexp(0.0, z) - (1 - target) * z))

    now = value(A, B)
    for _ in range(100):
        q = expit(A * f + B)  # the probability of the other class
        slope = w * (q - (1 - target))
        g1, g2 = float(slope @ f), float(slope.sum())
        if max(abs(g1), abs(g2)) < 1e-10 * max(1.0, float(w.sum())):
            break
        h = w * q * (1 - q)
        # A small ridge: the Hessian is singular where all decision values are equal.
        h11, h22, h21 = float(h @ (f * f)) + 1e-12, float(h.sum()) + 1e-12, float(h @ f)
        determinant = h11 * h22 - h21 * h21
        dA, dB = -(h22 * g1 - h21 * g2) / determinant, -(h11 * g2 - h21 * g1) / determinant
        descent, step = g1 * dA + g2 * dB, 1.0
        while step >= 1e-10:
            trial = value(A + step * dA, B + step * dB)
            if trial < now + 1e-4 * step * descent:
                A, B, now = A + step * dA, B + step * dB, trial
                break
            step /= 2
        else:
            break
    return A, B


def isotonic_steps(f: Array, positive: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """The rising function nearest to the labels, as values at decision values with straight lines between them."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(f, positive.astype(np.float64), sample_weight=weight)
    return np.asarray(model.X_thresholds_, np.float64), np.asarray(model.y_thresholds_, np.float64)


def probabilities_of(f: Array, calibration: dict[str, Array]) -> Array:
    """The probability of the positive class for decision values `f`."""
    if "sigmoid" in calibration:
        A, B = calibration["sigmoid"]
        return np.asarray(expit(-(A * f + B)))
    return np.asarray(np.interp(f, calibration["at"], calibration["value"]))


def couple(r: Array) -> Array:
    """Class probabilities (n, K) from those of pairs, r[:, i, j] = P(i | i or j), which add up to 1 with r[:, j, i]."""
    n, K, _ = r.shape
    r = np.clip(r, 1e-7, 1 - 1e-7)
    diagonal = np.arange(K)
    r[:, diagonal, diagonal] = 0.0
    # p minimises p'Qp over the simplex, Q_ii = sum_j r_ji^2, Q_ij = -r_ji r_ij: one linear system for each row.
    Q = -r * r.transpose(0, 2, 1)
    Q[:, diagonal, diagonal] = np.square(r).sum(axis=1)
    system = np.zeros((n, K + 1, K + 1))
    system[:, :K, :K] = Q
    system[:, :K, K] = system[:, K, :K] = 1.0
    right = np.zeros((n, K + 1, 1))
    right[:, K] = 1.0
    p = np.linalg.solve(system, right)[:, :K, 0]
    p = np.clip(p, 0.0, None)  # the solution is positive up to rounding
    return np.asarray(p / p.sum(axis=1, keepdims=True))
