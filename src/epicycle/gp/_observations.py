"""What was observed, with rows that are alike made one: all that the likelihood of a Gaussian process needs.

Targets y_k with weights w_k at the same x and with the same noise variance d enter through W = sum w_k, their mean and
S = sum w_k (y_k - mean)^2 alone, because

    prod_k N(y_k | f, d)^w_k = N(mean | f, d / W) * (2 pi d)^(-(W - 1) / 2) W^(-1/2) exp(-S / 2d).

The factors behind the first do not depend on f: `Observations.beside` is their logarithm. So a row of weight 3 is the
same as three rows, to the last term of the likelihood, and repeated rows cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import rows_of

__all__ = ["Observations", "observe"]


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
        return max(1.0, 0.5 * float(self.weight.sum()) * self.Y.shape[1])

    def variances(self, noise: float) -> np.ndarray:
        """Of a single target of each row."""
        return self.alpha + noise

    def beside(self, noise: float) -> tuple[float, float]:
        """(logarithm of the factors that do not depend on f, its derivative by the noise variance)."""
        d = self.variances(noise)
        if not (d > 0).all():
            return 0.0, 0.0  # without noise there is nothing to divide by the weight
        t, more = self.Y.shape[1], self.weight - 1
        value = -t * (more * np.log(2 * np.pi * d) + np.log(self.weight)) / 2 - self.spread / (2 * d)
        return float(value.sum()), float(((self.spread / d - t * more) / (2 * d)).sum())

    def take(self, chosen: np.ndarray, kernel: Kernel) -> Observations:
        """Some of the distinct rows."""
        return replace(
            self, rows=rows_of(self.rows, kernel, chosen), Y=self.Y[chosen], weight=self.weight[chosen],
            alpha=self.alpha[chosen], spread=self.spread[chosen], group=np.arange(len(chosen)),
        )  # fmt: skip


def observe(
    rows: Any, Y: np.ndarray, weight: np.ndarray, alpha: np.ndarray, kernel: Kernel, *, merge: bool
) -> Observations:
    """Rows of positive weight; equal ones with equal `alpha` become one where `merge` says so.

    The order of the result depends on what is in the rows alone.
    """
    n = len(Y)
    kept = np.flatnonzero(weight > 0)
    if len(kept) < n:
        rows, Y, weight, alpha = rows_of(rows, kernel, kept), Y[kept], weight[kept], alpha[kept]
    if not merge or kernel.takes == "precomputed":
        return Observations(rows, Y, weight, alpha, np.zeros(len(kept)), np.arange(len(kept)))
    first, group = distinct_rows(rows, alpha)
    total = np.bincount(group, weights=weight)
    means = np.column_stack([np.bincount(group, weights=weight * y) / total for y in Y.T])
    # a single target is its own mean, to the last bit
    single = np.bincount(group)[group] == 1
    means[group[single]] = Y[single]
    spread = np.bincount(group, weights=weight * ((Y - means[group]) ** 2).sum(axis=1))
    return Observations(rows_of(rows, kernel, first), means, total, alpha[first], spread, group)


def distinct_rows(rows: Any, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    both = np.column_stack([kinds.astype(np.float64), alpha])
    _, first, group = np.unique(both, axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()
