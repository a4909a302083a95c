"""What one pass over the rows gives for quantile regression.

Rows far from the hyperplane keep the sign of their residual while it moves a little, so they are known beforehand to
contribute a linear term to the objective (Portnoy and Koenker 1997, preprocessing). A pass adds those up and brings
back the rows in between, which are few. Whether the signs were right shows in the duality gap over all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle.data import Batch, Matrix
from epicycle.linear.robust._quantile_problem import Frame, product_batch, products_statistic

__all__ = ["Band", "Collected", "collect_statistic", "draw_statistic", "loss_statistic"]


@dataclass(frozen=True)
class Collected:
    """Rows brought back from a pass: (X, y, weight) of every batch; adds up by joining."""

    parts: Sequence[tuple[Matrix, np.ndarray, np.ndarray]]

    def __add__(self, other: Collected) -> Collected:
        return Collected([*self.parts, *other.parts])

    def joined(self) -> tuple[Matrix, np.ndarray, np.ndarray]:
        """All rows as one matrix, their targets and weights."""
        X = [part[0] for part in self.parts]
        joined = sp.csr_array(sp.vstack(X, format="csr")) if sp.issparse(X[0]) else np.concatenate(X)
        y, weight = (np.concatenate([part[k] for part in self.parts]) for k in (1, 2))
        return joined, y, weight


@dataclass(frozen=True)
class Band:
    """Rows with low <= r_i / |root'a_i| <= high at `beta` are undecided; above and below the sign is settled."""

    beta: np.ndarray
    root: np.ndarray
    low: float
    high: float

    def ratio(self, X: Matrix, r: np.ndarray, frame: Frame) -> np.ndarray:
        """r_i / |root'a_i|: residuals in units of how much the fit at the row may still move."""
        root = frame.inv_scale[:, None] * self.root[:-1]
        Z = np.asarray(X @ root.astype(X.dtype)) + (self.root[-1] - frame.shift @ root)
        return r / np.maximum(np.sqrt(np.einsum("ij,ij->i", Z, Z)), 1e-300)


def weights_of(batch: Batch) -> np.ndarray:
    return np.ones(batch.n_rows) if batch.weight is None else batch.weight


def residuals(batch: Batch, frame: Frame, beta: np.ndarray) -> np.ndarray:
    """Scaled residuals y - A beta of a batch."""
    fitted = product_batch(batch, frame.shift, beta[:-1] * frame.inv_scale, float(beta[-1]))
    return (batch.y - frame.y_shift) / frame.y_scale - fitted


def draw_statistic(batch: Batch, share: float) -> tuple[Collected]:
    """About this share of the rows of positive weight, evenly over the batches; all of them for share >= 1."""
    s = weights_of(batch)
    rows = np.flatnonzero(s > 0)
    if share < 1:
        rng = np.random.default_rng([batch.start, batch.n_rows])
        rows = rows[rng.random(len(rows)) < share]
    return (Collected([(batch.X[rows], batch.y[rows], s[rows])]),)


def pinball(r: np.ndarray, tau: float) -> np.ndarray:
    return np.maximum(tau * r, (tau - 1) * r)


def collect_statistic(batch: Batch, frame: Frame, tau: float, band: Band) -> tuple[np.ndarray, float, Collected]:
    """(sum of d_i a_i, sum of d_i y_i) over the settled rows, and the others."""
    s = weights_of(batch)
    r = residuals(batch, frame, band.beta)
    ratio = band.ratio(batch.X, r, frame)
    settled = (ratio < band.low) | (ratio > band.high)
    d = np.where(settled, s * (tau - (r < 0)), 0.0)
    (g,) = products_statistic(Batch(batch.X, d), frame.shift)
    g[:-1] *= frame.inv_scale
    rows = np.flatnonzero(~settled & (s > 0))
    constant = float(d @ ((batch.y - frame.y_shift) / frame.y_scale))
    return g, constant, Collected([(batch.X[rows], batch.y[rows], s[rows])])


def loss_statistic(batch: Batch, frame: Frame, tau: float, beta: np.ndarray) -> tuple[float, float]:
    """(sum of the losses at beta, and at the centre of y)."""
    s = weights_of(batch)
    y = (batch.y - frame.y_shift) / frame.y_scale
    return float(s @ pinball(residuals(batch, frame, beta), tau)), float(s @ pinball(y, tau))
