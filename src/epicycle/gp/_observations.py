"""Observations with equal rows merged: sufficient statistics of the likelihood of a Gaussian process.

Regression. Targets y_k with weights w_k at the same x and with the same noise variance d enter through W = sum w_k,
their mean and S = sum w_k (y_k - mean)^2 alone, because

    prod_k N(y_k | f, d)^w_k = N(mean | f, d / W) * (2 pi d)^(-(W - 1) / 2) W^(-1/2) exp(-S / 2d).

The factors behind the first do not depend on f: `Observations.log_constant` is their logarithm. So a row of weight 3 is
the same as three rows, to the last term of the likelihood, and repeated rows cost nothing.

Classification. With counts N (n, k) of every class at every row, c = sum_k N_k and probabilities p of the latent
values f,

    log p(N | f) = sum_k N_k f_k - c log sum_k exp f_k,    gradient N - c p,    W = c (diag p - p p').

For two classes one latent value is enough: f is the log odds of the second, and W = c p (1 - p). Rows that are alike
add up to one row of counts; posterior and marginal likelihood by Laplace's method are the same to the last term.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import select_rows
from epicycle.stats._class_scores import log_probabilities


@dataclass(frozen=True)
class Observations:
    """Distinct rows with the mean of their targets.

    rows : what the kernel prepares
    Y : (n, t), means of the targets of each row
    weight : (n,), sums of weights
    alpha : (n,), known variances of the noise
    spread : (n,), sums of w (y - mean)^2 over all targets
    group : (n_given,), which of the rows each given one has become
    """

    rows: Any
    Y: np.ndarray
    weight: np.ndarray
    alpha: np.ndarray
    spread: np.ndarray
    group: np.ndarray

    @property
    def n(self) -> int:
        return len(self.Y)

    @property
    def scale(self) -> float:
        """Half the number of observations, at least one: about what the terms of the likelihood add up to."""
        return float(max(1.0, 0.5 * float(self.weight.sum()) * self.Y.shape[1]))

    def variances(self, noise: float) -> np.ndarray:
        """Noise variances of a single target of each row."""
        return self.alpha + noise

    def log_constant(self, noise: float) -> tuple[float, float]:
        """(logarithm of the factors that do not depend on f, its derivative by the noise variance)."""
        d = self.variances(noise)
        if not (d > 0).all():
            return 0.0, 0.0  # without noise there is nothing to divide by the weight
        t, more = self.Y.shape[1], self.weight - 1
        value = -t * (more * np.log(2 * np.pi * d) + np.log(self.weight)) / 2 - self.spread / (2 * d)
        return float(value.sum()), float(((self.spread / d - t * more) / (2 * d)).sum())

    def take(self, chosen: np.ndarray, kernel: Kernel) -> Observations:
        """Some of the distinct rows."""
        rows, group = select_rows(self.rows, kernel, chosen), np.arange(len(chosen))
        Y, weight, alpha, spread = (values[chosen] for values in (self.Y, self.weight, self.alpha, self.spread))
        return Observations(rows, Y, weight, alpha, spread, group)


def observe(
    rows: Any, Y: np.ndarray, weight: np.ndarray, alpha: np.ndarray, kernel: Kernel, *, merge: bool
) -> Observations:
    """Rows of positive weight; equal ones with equal `alpha` become one where `merge` says so.

    The order of the result depends on what is in the rows alone.
    """
    n = len(Y)
    kept = np.flatnonzero(weight > 0)
    if len(kept) < n:
        rows, Y, weight, alpha = select_rows(rows, kernel, kept), Y[kept], weight[kept], alpha[kept]
    if not merge or kernel.takes == "precomputed" or kernel.keeps_equal_rows:
        return Observations(rows, Y, weight, alpha, np.zeros(len(kept)), np.arange(len(kept)))
    first, group = _distinct_rows(rows, alpha)
    total = np.bincount(group, weights=weight)
    means = np.column_stack([np.bincount(group, weights=weight * y) / total for y in Y.T])
    # a single target is its own mean, to the last bit
    single = np.bincount(group)[group] == 1
    means[group[single]] = Y[single]
    spread = np.bincount(group, weights=weight * ((Y - means[group]) ** 2).sum(axis=1))
    return Observations(select_rows(rows, kernel, first), means, total, alpha[first], spread, group)


def _distinct_rows(rows: Any, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a row of each kind, which kind each row is), kinds in the order of their bytes."""
    if sp.issparse(rows):
        rows = rows.tocsr()
        rows.sort_indices()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        keys = [blake2b(rows.indices[a:b].tobytes() + rows.data[a:b].tobytes()).hexdigest() for a, b in ends]
        kinds = np.unique(np.array(keys), return_inverse=True)[1]
    elif rows.dtype == object:
        kinds = np.unique(rows.astype(str), return_inverse=True)[1]
    else:
        plain = np.ascontiguousarray(rows + 0)  # minus zero is zero
        whole = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
        kinds = np.unique(whole, return_inverse=True)[1]
    # Equal rows with different known variances are different observations.
    both = np.column_stack([kinds.astype(np.float64), alpha])
    _, first, group = np.unique(both, axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


@dataclass(frozen=True)
class Counts:
    """Distinct rows and the weight of every class at them.

    rows : what the kernel prepares
    N : (n, 1) for two classes, the weight of the second, or (n, k)
    total : (n,)
    """

    rows: Any
    N: np.ndarray
    total: np.ndarray

    @property
    def n(self) -> int:
        return len(self.N)

    @property
    def n_latent(self) -> int:
        return int(self.N.shape[1])

    @property
    def scale(self) -> float:
        return max(1.0, 0.5 * float(self.total.sum()))

    def take(self, chosen: np.ndarray, kernel: Kernel) -> Counts:
        return Counts(select_rows(self.rows, kernel, chosen), self.N[chosen], self.total[chosen])

    def log_likelihood(self, f: np.ndarray) -> float:
        log_p = log_probabilities(f)
        if f.shape[1] == 1:
            return float(self.N[:, 0] @ log_p[:, 1] + (self.total - self.N[:, 0]) @ log_p[:, 0])
        return float(np.vdot(self.N, log_p))

    def probabilities(self, f: np.ndarray) -> np.ndarray:
        """(n, 1), of the second class, or (n, k)."""
        log_p = log_probabilities(f)
        return np.asarray(np.exp(log_p[:, 1:] if f.shape[1] == 1 else log_p))

    def gradient(self, p: np.ndarray) -> np.ndarray:
        return np.asarray(self.N - self.total[:, None] * p)

    def curvature(self, p: np.ndarray) -> np.ndarray:
        """W of every row, (n, k, k)."""
        if p.shape[1] == 1:
            return np.asarray((self.total * p[:, 0] * (1 - p[:, 0]))[:, None, None])
        W = -p[:, :, None] * p[:, None, :]
        index = np.arange(p.shape[1])
        W[:, index, index] += p
        return np.asarray(self.total[:, None, None] * W)

    def third(self, p: np.ndarray, V: np.ndarray) -> np.ndarray:
        """-1/2 d / df of tr(V W) for given covariances V (n, k, k) of every row: (n, k)."""
        if p.shape[1] == 1:
            q = p[:, 0]
            return np.asarray((-0.5 * V[:, 0, 0] * self.total * q * (1 - q) * (1 - 2 * q))[:, None])
        v = np.einsum("ikk->ik", V) - 2 * np.einsum("ikl,il->ik", V, p)
        return np.asarray(-0.5 * self.total[:, None] * p * (v - np.einsum("ik,ik->i", p, v)[:, None]))


def count_labels(rows: Any, codes: np.ndarray, weight: np.ndarray, n_classes: int, kernel: Kernel) -> Counts:
    """Counts of labels 0 .. n_classes - 1; equal rows become one, where the kernel lets them."""
    each = np.zeros((len(codes), n_classes))
    each[np.arange(len(codes)), codes] = weight
    if kernel.takes != "precomputed" and not kernel.keeps_equal_rows:
        first, group = _distinct_rows(rows, np.zeros(len(codes)))
        rows = select_rows(rows, kernel, first)
        each = np.column_stack([np.bincount(group, weights=column) for column in each.T])
    return Counts(rows, each[:, 1:] if n_classes == 2 else each, each.sum(axis=1))
