"""The linear programme behind quantile regression, on rows that are in memory.

    minimise over beta   sum_i u_i max(r_i, 0) + l_i max(-r_i, 0) - g'beta,      r = y - A beta,

whose dual is  max y'd  subject to  -l <= d <= u  and  A'd + g = 0.  Row i of A is ((x_i - shift) * inv_scale, 1) with
u_i = s_i tau and l_i = s_i (1 - tau); g stands for rows whose sign is settled, which contribute a linear term. One unit
row for each coordinate, with y = 0 and u = l = penalty_j, carries the L1 penalty; a coordinate that is held at zero
(the intercept of a model without one, a column that depends on others) has an infinite penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from epicycle import _native, engine
from epicycle.data import ArrayData, Batch, Matrix
from epicycle.stats._moments import moment_statistic


@dataclass(frozen=True)
class Frame:
    """The coordinates of a fit: beta_j = w_j / inv_scale_j, and the last is the value at `shift`, all about `y_shift`.

    penalty : (p + 1,) bounds of the unit rows: 0 free, finite penalised, inf held at zero.
    second : (p + 1,) among several minima the one with the largest second'beta is taken.
    """

    shift: np.ndarray
    inv_scale: np.ndarray
    y_shift: float
    y_scale: float
    penalty: np.ndarray
    second: np.ndarray

    @property
    def size(self) -> int:
        return len(self.shift) + 1

    def original(self, beta: np.ndarray) -> tuple[np.ndarray, float]:
        """(w, b) in the units of the data."""
        w = beta[:-1] * self.inv_scale * self.y_scale
        return w, float(self.y_shift + self.y_scale * beta[-1] - w @ self.shift)

    def scaled(self, w: np.ndarray, b: float) -> np.ndarray:
        """The inverse of :meth:`original`."""
        w = w / self.y_scale
        slopes = np.divide(w, self.inv_scale, out=np.zeros_like(w), where=self.inv_scale > 0)
        return np.append(slopes, (b - self.y_shift) / self.y_scale + w @ self.shift)


def product_batch(batch: Batch, shift: np.ndarray, coef: np.ndarray, intercept: float) -> np.ndarray:
    """intercept + (x_i - shift)'coef for the rows of a batch."""
    if sp.issparse(batch.X):
        return np.asarray(batch.X @ coef) + intercept
    return _native.linear.shifted_product(batch.X, shift, coef, intercept)


def products_statistic(batch: Batch, shift: np.ndarray) -> tuple[np.ndarray]:
    """sum_i y_i (x_i - shift, 1): the targets of the batch are the factors."""
    if sp.issparse(batch.X):
        return (np.append(batch.X.T @ batch.y, batch.y.sum()),)
    return (_native.linear.shifted_sums(batch.X, shift, batch.y),)


@dataclass(frozen=True)
class Programme:
    """The rows X with targets y (scaled, shifted) and bounds u, l; g as above."""

    X: Matrix
    y: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    g: np.ndarray
    frame: Frame
    n_jobs: int | None = None

    @cached_property
    def penalised(self) -> np.ndarray:
        """Coordinates with a finite penalty: their unit rows follow the rows of X in all vectors."""
        return np.flatnonzero(np.isfinite(self.frame.penalty) & (self.frame.penalty > 0))

    @cached_property
    def free(self) -> np.ndarray:
        """Coordinates that are not held at zero."""
        return np.flatnonzero(np.isfinite(self.frame.penalty))

    @cached_property
    def targets(self) -> np.ndarray:
        return np.append(self.y, np.zeros(len(self.penalised)))

    @cached_property
    def upper_all(self) -> np.ndarray:
        return np.append(self.upper, self.frame.penalty[self.penalised])

    @cached_property
    def lower_all(self) -> np.ndarray:
        return np.append(self.lower, self.frame.penalty[self.penalised])

    def product(self, v: np.ndarray) -> np.ndarray:
        """A v, unit rows included."""
        coef = v[:-1] * self.frame.inv_scale
        rows = engine.map(product_batch, ArrayData(self.X), self.frame.shift, coef, float(v[-1]), n_jobs=self.n_jobs)
        return np.append(rows, v[self.penalised])

    def transposed(self, d: np.ndarray) -> np.ndarray:
        """A'd."""
        n = len(self.y)
        (out,) = engine.sum(
            products_statistic, ArrayData(self.X, np.ascontiguousarray(d[:n])), self.frame.shift, n_jobs=self.n_jobs
        )
        out[:-1] *= self.frame.inv_scale
        out[self.penalised] += d[n:]
        return np.asarray(out)

    def normal_equations(self, theta: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(A' diag(theta) A, A' diag(theta) t), from one pass."""
        n, p = len(self.y), self.X.shape[1]
        data = ArrayData(self.X, np.ascontiguousarray(t[:n]), np.ascontiguousarray(theta[:n]))
        M, *_ = engine.sum(moment_statistic, data, np.append(self.frame.shift, 0.0), n_jobs=self.n_jobs)
        order = np.append(np.arange(p), p + 1)
        scale = np.append(self.frame.inv_scale, 1.0)
        G = M[np.ix_(order, order)] * scale * scale[:, None]
        rhs = M[p, order] * scale
        G[self.penalised, self.penalised] += theta[n:]
        rhs[self.penalised] += theta[n:] * t[n:]
        return G, rhs

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Rows of A as a dense matrix; n + j is the unit row of coordinate j."""
        n, d = len(self.y), self.frame.size
        out = np.zeros((len(indices), d))
        real = indices < n
        X = self.X[indices[real]]
        X = X.toarray() if sp.issparse(X) else X
        out[real, :-1] = (X - self.frame.shift) * self.frame.inv_scale
        out[real, -1] = 1.0
        out[~real, indices[~real] - n] = 1.0
        return out

    def pivots(
        self, basis: np.ndarray, inverse: np.ndarray, limit: int
    ) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray]:
        """Up to `limit` simplex pivots: (state, pivots, beta, residuals, dual over rows and all coordinates)."""
        f = self.frame
        programme = _native.linear.QuantileProgramme(
            shift=f.shift,
            inv_scale=f.inv_scale,
            y=self.y,
            upper=self.upper,
            lower=self.lower,
            penalty=f.penalty,
            g=self.g,
            g2=f.second,
        )
        return _native.linear.quantile_pivots(self.X, programme, basis, inverse, max_pivots=limit)

    def objective(self, beta: np.ndarray) -> float:
        """The value at beta, in scaled units."""
        r = self.targets - self.product(beta)
        return float(self.upper_all @ np.maximum(r, 0) + self.lower_all @ np.maximum(-r, 0) - self.g @ beta)


# --------------------------------------------------------------------------------------------------------------------
# What one pass over the rows gives for quantile regression.
#
# Rows far from the hyperplane keep the sign of their residual while it moves a little, so they are known beforehand
# to contribute a linear term to the objective (Portnoy and Koenker 1997, preprocessing). A pass adds those up and
# brings back the rows in between, which are few. Whether the signs were right shows in the duality gap over all rows.


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
        return np.asarray(r / np.maximum(np.sqrt(np.einsum("ij,ij->i", Z, Z)), 1e-300))


def weights_of(batch: Batch) -> np.ndarray:
    return np.ones(batch.n_rows) if batch.weight is None else batch.weight


def residuals(batch: Batch, frame: Frame, beta: np.ndarray) -> np.ndarray:
    """Scaled residuals y - A beta of a batch."""
    fitted = product_batch(batch, frame.shift, beta[:-1] * frame.inv_scale, float(beta[-1]))
    return np.asarray((batch.y - frame.y_shift) / frame.y_scale - fitted)


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
