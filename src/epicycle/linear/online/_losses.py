"""The losses once more in NumPy, with their conjugates, for bounds on the distance from the minimum.

For classification the code y is -1 or 1 and m = y z. l*(a) = sup_z a z - l(z) is written in c = -y a, which is where
the derivative of a loss that falls in m lives; it is infinite outside the set named with it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, xlogy

__all__ = ["conjugate", "loss_and_slope"]


def loss_and_slope(loss: str, z: np.ndarray, y: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """l(z, y) and dl/dz."""
    m, r = y * z, z - y
    if loss in ("hinge", "perceptron"):
        short = (1.0 if loss == "hinge" else 0.0) - m
        return np.maximum(short, 0.0), np.where(short >= 0, -y, 0.0)
    if loss == "log_loss":
        return np.logaddexp(0.0, -m), -y * expit(-m)
    if loss == "modified_huber":
        inside = np.where(m >= 1, 0.0, np.square(1 - m))
        return np.where(m >= -1, inside, -4 * m), np.where(m >= 1, 0.0, np.where(m >= -1, -2 * (1 - m), -4.0)) * y
    if loss == "squared_hinge":
        short = np.maximum(1 - m, 0.0)
        return short * short, -2 * y * short
    if loss == "squared_error":
        return 0.5 * r * r, r
    if loss == "huber":
        near = np.abs(r) <= epsilon
        return np.where(near, 0.5 * r * r, epsilon * np.abs(r) - 0.5 * epsilon**2), np.clip(r, -epsilon, epsilon)
    over = np.maximum(np.abs(r) - epsilon, 0.0)
    if loss == "epsilon_insensitive":
        return over, np.sign(r) * (over > 0)
    return over * over, 2 * np.sign(r) * over


def conjugate(loss: str, a: np.ndarray, y: np.ndarray, epsilon: float) -> np.ndarray:
    """l*(a, y); a has to be a derivative of the loss, or lie between several."""
    c = -y * a
    if loss == "hinge":  # 0 <= c <= 1
        return -c
    if loss == "perceptron":  # 0 <= c <= 1
        return np.zeros_like(c)
    if loss == "log_loss":  # 0 <= c <= 1
        c = np.clip(c, 0.0, 1.0)
        return xlogy(c, c) + xlogy(1 - c, 1 - c)
    if loss in ("modified_huber", "squared_hinge"):  # 0 <= c <= 4, 0 <= c
        return 0.25 * c * c - c
    if loss in ("squared_error", "huber"):  # any a, |a| <= epsilon
        return a * y + 0.5 * a * a
    if loss == "epsilon_insensitive":  # |a| <= 1
        return a * y + epsilon * np.abs(a)
    return a * y + epsilon * np.abs(a) + 0.25 * a * a
