"""Leave-one-out and generalised cross-validation of ridge regression, exact and for all alphas at once.

A row that is left out moves the fit by a rank-one change, so its error is e_i = r_i / (1 - h_i): no refit. Written with
the shrinkage s_j of each direction (see `ridge_spectrum`),

    r_i = r0_i + sum_j q_ij s_j c_j,     1 - h_i = f_i + w_i sum_j q_ij^2 s_j,

where r0 and f are residual and free part of least squares, both sums have no cancellation, and a row that least squares
fits exactly has r0_i = f_i = 0. Generalised cross-validation replaces every h_i by their mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.engine._fold import Fold
from epicycle.linear.ridge._spectrum import KernelSpectrum, RowSpectrum, Spectrum
from epicycle.stats._moments import target_columns

#: 1 - h_i below which the fit passes through row i but for rounding, so that leaving it out is not defined.
EXACT_FIT = 1e-11


@dataclass(frozen=True)
class LeaveOneOut:
    """The directions and the shrinkage for every alpha, for a block of rows."""

    basis: np.ndarray | None
    mean: np.ndarray
    share: float
    spans: bool
    c: np.ndarray
    s: np.ndarray
    unpenalised: np.ndarray

    @classmethod
    def of(cls, spectrum: Spectrum, alphas: np.ndarray) -> LeaveOneOut:
        basis = spectrum.basis if isinstance(spectrum, RowSpectrum) else None
        s = spectrum.shrinkage(alphas)
        return cls(basis, spectrum.mean, spectrum.share, spectrum.spans, spectrum.c, s, spectrum.h == 0)

    def errors(self, q: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """e of shape (n, k, n_alphas), for y about its mean; nan where leaving the row out leaves nothing to fit."""
        squares = q * q
        own = squares.sum(axis=1) + self.share
        free = 1 - (own if weight is None else own * weight)
        exact = np.ones(len(q), bool) if self.spans else free <= EXACT_FIT
        if self.spans and weight is not None:
            exact = weight > 0  # rows of no weight are outside of what is spanned
        free[exact] = 0.0
        across = squares @ self.s  # (n, n_alphas)
        if weight is not None:
            across *= weight[:, None]
        across += free[:, None]
        rest = y - q @ self.c
        rest[exact] = 0.0
        e = np.empty((len(q), y.shape[1], self.s.shape[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            for t in range(y.shape[1]):
                np.matmul(q, self.s * self.c[:, t, None], out=e[:, t])
                e[:, t] += rest[:, t, None]
                e[:, t] /= across
        determines = squares[:, self.unpenalised].sum(axis=1) + self.share
        e[(determines if weight is None else determines * weight) >= 1 - EXACT_FIT] = np.nan
        e[~np.isfinite(e)] = np.nan
        return e

    def of_batch(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """(errors, y) of a block."""
        p = batch.X.shape[1]
        m = self.mean[:p]
        q = np.asarray(batch.X @ self.basis) - m @ self.basis if sp.issparse(batch.X) else (batch.X - m) @ self.basis
        y = target_columns(batch.y)
        return self.errors(q, y - self.mean[p:], batch.weight), y


def squares_statistic(batch: Batch, rule: LeaveOneOut) -> tuple[np.ndarray, float]:
    """(sum_i w_i e_i^2 of shape (k, n_alphas), total weight)."""
    e, _ = rule.of_batch(batch)
    return _squares(e, batch.weight)


def _squares(e: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, float]:
    if weight is None:
        return np.einsum("ika,ika->ka", e, e), float(len(e))
    used = weight > 0
    return np.einsum("ika,ika,i->ka", e[used], e[used], weight[used]), float(weight.sum())


def prediction_batch(batch: Batch, rule: LeaveOneOut) -> np.ndarray:
    """(y, prediction without the row), of shape (n, k, 1 + n_alphas)."""
    e, y = rule.of_batch(batch)
    return np.concatenate([y[:, :, None], y[:, :, None] - e], axis=2)


def loo_squared_errors(data: Data, spectrum: Spectrum, alphas: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Weighted means of squared errors without the row, of shape (k, n_alphas)."""
    rule = LeaveOneOut.of(spectrum, alphas)
    if isinstance(spectrum, KernelSpectrum):
        fold = Fold()
        for e, _, w in _of_kernel(spectrum, rule):
            fold.add(_squares(e, w))
        total, weight = fold.total
    else:
        total, weight = engine.sum(squares_statistic, data, rule, n_jobs=n_jobs)
    return np.asarray(total / weight)


def loo_predictions(
    data: Data, spectrum: Spectrum, alphas: np.ndarray, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(y, predictions without the row, of shapes (n, k) and (n, k, n_alphas), weights), all in memory."""
    k = spectrum.c.shape[1]
    if data.n_rows is not None:
        require_memory(
            16.0 * data.n_rows * k * (len(alphas) + 1),
            f"predictions of {data.n_rows} rows for {len(alphas)} alphas",
            "leave scoring and store_cv_results alone: squared errors are only summed",
        )
    rule = LeaveOneOut.of(spectrum, alphas)
    if isinstance(spectrum, KernelSpectrum):
        pieces = [np.concatenate([y[:, :, None], y[:, :, None] - e], axis=2) for e, y, _ in _of_kernel(spectrum, rule)]
        table = np.concatenate(pieces)
    else:
        table = engine.map(prediction_batch, data, rule, n_jobs=n_jobs)
        table = table.compute() if isinstance(data, DaskData) else table
    return table[:, :, 0], table[:, :, 1:], _weights(data, len(table))


def weight_batch(batch: Batch) -> np.ndarray:
    return np.ones(batch.n_rows) if batch.weight is None else batch.weight


def _weights(data: Data, n: int) -> np.ndarray:
    if not data.has_weight:
        return np.ones(n)
    if isinstance(data, ArrayData):
        return np.asarray(data.weight)
    weights = engine.map(weight_batch, data)
    return np.asarray(weights.compute() if isinstance(data, DaskData) else weights)


def _of_kernel(
    spectrum: KernelSpectrum, rule: LeaveOneOut, rows: int = 1024
) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """(errors, y, weight) of blocks of rows whose directions are known already."""
    data = spectrum.data
    y = target_columns(data.y)
    p = data.n_features
    for first in range(0, data.n_rows, rows):
        block = slice(first, first + rows)
        w = None if data.weight is None else data.weight[block]
        yield rule.errors(spectrum.q[block], y[block] - spectrum.mean[p:], w), y[block], w


def gcv_errors(spectrum: Spectrum, alphas: np.ndarray) -> np.ndarray:
    """n sum_i w_i r_i^2 / (n - degrees of freedom)^2 over the total weight, of shape (k, n_alphas)."""
    n = spectrum.n_rows
    rank = len(spectrum.g) + int(spectrum.intercept)
    left = max(n - rank, 0) + spectrum.shrinkage(alphas).sum(axis=0)  # n - degrees of freedom, without cancellation
    if not (left > 0).all():
        raise DataError("X: no degrees of freedom are left for the noise; generalised cross-validation has no meaning")
    return np.asarray(spectrum.residual_squares(alphas) / spectrum.weight / (left / n) ** 2)


def refuse_undefined(errors: np.ndarray) -> None:
    """Raise where a row alone determines what is not penalised: without it there is nothing to predict from."""
    if not np.isfinite(errors).all():
        raise DataError(
            "X: a row alone determines an unpenalised feature (or the intercept, for n_samples=1), so that leaving it "
            "out leaves nothing to fit; penalise the feature, or use cv="
        )
