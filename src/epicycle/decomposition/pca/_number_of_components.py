"""Number of principal components: by retained variance, by the evidence of each number, or by comparison with noise."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

DRAWS, QUANTILE = 40, 0.95  # of parallel analysis: tables of noise, and which of their eigenvalues has to be exceeded


def by_retained_variance(values: np.ndarray, share: float) -> int:
    """The fewest of the eigenvalues, which fall, whose sum exceeds this share of their total."""
    return int(np.searchsorted(np.cumsum(values) / values.sum(), share, side="right")) + 1


def by_evidence(values: np.ndarray, n: int) -> int:
    """The number of components of the largest evidence under probabilistic PCA, by Laplace's approximation.

    Minka, Automatic choice of dimensionality for PCA (2000), equations 72 to 78.
    """
    return int(np.argmax([log_evidence(values, k, n) for k in range(1, len(values))])) + 1 if len(values) > 1 else 1


def log_evidence(values: np.ndarray, k: int, n: int) -> float:
    """log p(D | k) of n rows, up to a constant, from all p eigenvalues, which fall; 0 < k < p."""
    p = len(values)
    if values[k - 1] < np.finfo(np.float64).eps:  # no variance along the last axis: not a model with k axes
        return -np.inf
    i = np.arange(1, k + 1)
    log_prior = -k * np.log(2.0) + float((gammaln((p - i + 1) / 2) - np.log(np.pi) * (p - i + 1) / 2).sum())
    noise = max(float(values[k:].mean()), np.finfo(np.float64).eps)
    m = p * k - k * (k + 1) / 2
    spread = values.copy()
    spread[k:] = noise
    first, second = np.triu_indices(k, 1, p)
    log_curvature = float(
        np.log(
            (values[first] - values[second]) * (1.0 / spread[second] - 1.0 / spread[first]) + np.finfo(np.float64).tiny
        ).sum()
    ) + len(first) * np.log(n)
    fit = -n / 2 * float(np.log(values[:k]).sum()) - n / 2 * (p - k) * np.log(noise)
    return float(log_prior + fit + (m + k) / 2 * np.log(2 * np.pi) - log_curvature / 2 - k / 2 * np.log(n))


def by_parallel_analysis(values: np.ndarray, variance: np.ndarray, n: int, rng: np.random.Generator) -> int:
    """Leading eigenvalues that exceed those of independent normal columns of the same variances.

    The scatter of n such rows is drawn by itself, from its triangular factor (Bartlett), without rows.
    """
    p = len(variance)
    drawn = np.empty((DRAWS, p))
    scale = np.sqrt(variance)
    degrees = np.maximum(n - 1 - np.arange(p), 0)
    for draw in range(DRAWS):
        L = np.tril(rng.standard_normal((p, p)), -1)
        L[:, n - 1 :] = 0.0  # fewer rows than columns: no further direction
        L[np.diag_indices(p)] = np.sqrt(rng.chisquare(np.maximum(degrees, 1))) * (degrees > 0)
        drawn[draw] = np.linalg.svd(scale[:, None] * L, compute_uv=False) ** 2 / (n - 1)
    limit = np.quantile(drawn, QUANTILE, axis=0)[: len(values)]
    below = np.flatnonzero(values <= limit)
    return int(below[0]) if len(below) else len(values)
