"""Class probabilities averaged over normal latent values.

The logistic function is a mixture of eight normal distribution functions to 2e-9 (the scales and weights follow Monahan
and Stefanski, 1989), and the average of Phi(s f) over N(m, v) is Phi(m s / sqrt(1 + v s^2)). For several classes the
average of the softmax is taken over a fixed low-discrepancy set of points.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.special
import scipy.stats

__all__ = ["average_logistic", "average_softmax"]

_WEIGHTS = np.array(
    [0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
     0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354]
)  # fmt: skip
_SCALES = np.array(
    [1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
     0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306]
)  # fmt: skip
_POINTS = 8  # powers of two
_ROWS = 512


def average_logistic(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E 1 / (1 + exp(-f)) for f ~ N(mean, variance)."""
    s = _SCALES[:, None]
    return np.asarray(_WEIGHTS @ scipy.special.ndtr(mean * s / np.sqrt(1 + variance * s * s))) / _WEIGHTS.sum()


@cache
def _points(k: int) -> np.ndarray:
    """Normal scores of Sobol's points, and their negatives: (2^9, k)."""
    sobol = scipy.stats.qmc.Sobol(k, scramble=True, rng=np.random.default_rng(0))
    z = scipy.special.ndtri(sobol.random_base2(_POINTS))
    return np.vstack([z, -z])


def average_softmax(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """E softmax(f) for f ~ N(mean_i, covariance_i): (n, k) from (n, k) and (n, k, k)."""
    n, k = mean.shape
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    z = _points(k)
    out = np.empty((n, k))
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        f = mean[part][:, None, :] + np.einsum("sj,ikj->isk", z, roots[part])
        out[part] = scipy.special.softmax(f, axis=2).mean(axis=1)
    return out / out.sum(axis=1, keepdims=True)
