"""Covariances drawn towards a multiple of the identity:  (1 - s) C + s (tr C / p) I.

Ledoit and Wolf (2004) minimise the expected squared error of the matrix,  s = min(b, d) / d  with
b = (sum_i ||x_i||^4 / n - ||C||^2) / (n p)  and  d = ||C - (tr C / p) I||^2 / p.  Chen, Wiesel, Eldar and Hero (2010)
have a formula for normal rows that needs C alone ("oas").
"""

from __future__ import annotations

import numpy as np

from epicycle.stats._class_scatter import ClassScatter


def shrunk(C: np.ndarray, amount: float) -> np.ndarray:
    """(1 - s) C + s (tr C / p) I."""
    out = (1.0 - amount) * C
    out.flat[:: len(C) + 1] += amount * np.trace(C) / len(C)
    return np.asarray(out)


def ledoit_wolf_amount(C: np.ndarray, fourth: float, n: float) -> float:
    """s of n rows with covariance C about their mean; `fourth` is the sum of ||x_i - mean||^4."""
    p, mu = len(C), float(np.trace(C)) / len(C)
    if p == 1 or mu <= 0:
        return 0.0
    C, fourth = C / mu, fourth / mu / mu  # s does not depend on the scale, whose powers may overflow
    squares = float(np.sum(C * C))
    delta = squares / p - 1.0
    beta = min((fourth / n - squares) / (n * p), delta)
    return beta / delta if beta > 0 and delta > 0 else 0.0


def oas_amount(C: np.ndarray, n: float) -> float:
    """s for n normal rows with covariance C."""
    p, mu = len(C), float(np.trace(C)) / len(C)
    if p == 1 or mu <= 0:
        return 0.0
    alpha = float(np.mean((C / mu) ** 2))
    below = (n + 1.0) * (alpha - 1.0 / p)
    return 1.0 if below <= 0 else min((alpha + 1.0) / below, 1.0)


def class_covariance(moments: ClassScatter, k: int, shrinkage: str | float | None) -> tuple[np.ndarray, float]:
    """(covariance of class k, how much it was shrunk).

    `shrinkage` is a number, "oas", "ledoit-wolf", or "auto" for Ledoit and Wolf's amount in units of the columns'
    standard deviations.
    """
    n = float(moments.weight[k])
    C = moments.scatter[k] / n
    if shrinkage is None:
        return C, 0.0
    if isinstance(shrinkage, str):
        if shrinkage == "oas":
            amount = oas_amount(C, n)
            return shrunk(C, amount), amount
        assert moments.fourth is not None
        scale = np.sqrt(np.diagonal(C)) if shrinkage == "auto" else np.ones(len(C))
        scale = np.where(scale > 0, scale, 1.0)
        standard = C / np.outer(scale, scale)
        fourth = float(np.sum(moments.fourth[k] / np.outer(scale**2, scale**2)))
        amount = ledoit_wolf_amount(standard, fourth, n)
        return shrunk(standard, amount) * np.outer(scale, scale), amount
    return shrunk(C, float(shrinkage)), float(shrinkage)
