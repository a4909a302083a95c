"""Weight, mean and scatter of the rows of each class: a statistic that adds up.

With d = x - m_k for a row of class k, the scatter is S_k = sum w d d'. Two parts a and b of a class are merged by
m = m_a + (m_b - m_a) w_b / w and S = S_a + S_b + (m_b - m_a)(m_b - m_a)' w_a w_b / w  (Chan, Golub and LeVeque, 1983),
which keeps its digits for columns far from zero. Where they are asked for, T_jl = sum w d_j^2 d_l and
Q_jl = sum w d_j^2 d_l^2 are carried along; they too can be moved to another mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import Batch


def dense_rows(X: Any) -> np.ndarray:
    """A batch as an ordinary array of float64."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


@dataclass(frozen=True)
class ClassScatter:
    """Of K classes and p columns; `scatter` is of shape (K, p, p), or (1, p, p) for the sum over the classes."""

    weight: np.ndarray  # (K,)
    rows: np.ndarray  # (K,): rows of positive weight
    mean: np.ndarray  # (K, p)
    scatter: np.ndarray
    third: np.ndarray | None = None
    fourth: np.ndarray | None = None

    @property
    def pooled(self) -> bool:
        """Whether only the sum over the classes is known."""
        return len(self.scatter) != len(self.weight)

    def __add__(self, other: ClassScatter) -> ClassScatter:
        n = self.weight + other.weight
        share = np.divide(other.weight, n, out=np.zeros_like(n), where=n > 0)[:, None]
        both = ((self.weight > 0) & (other.weight > 0))[:, None]
        step = np.where(both, other.mean - self.mean, 0.0)
        # Where one side is empty its mean is no number to go by: the other's is taken as it is.
        mean = np.where(self.weight[:, None] > 0, self.mean + step * share, other.mean)
        moved = step * np.sqrt(self.weight[:, None] * share)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused when all rows are in
            between = (moved.T @ moved)[None] if self.pooled else moved[:, :, None] * moved[:, None, :]
            third, fourth = None, None
            if self.third is not None:
                one, two = self._moved(mean), other._moved(mean)
                third, fourth = one[0] + two[0], one[1] + two[1]
            scatter = self.scatter + other.scatter + between
        return ClassScatter(n, self.rows + other.rows, mean, scatter, third, fourth)

    def _moved(self, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T and Q about another mean: with d + a for d, sums of d alone vanish."""
        assert self.third is not None
        assert self.fourth is not None
        a = np.where(self.weight[:, None] > 0, self.mean - mean, 0.0)
        w, S, T = self.weight[:, None, None], self.scatter, self.third
        square = np.diagonal(S, axis1=1, axis2=2)
        row, column = a[:, :, None], a[:, None, :]
        third = T + square[:, :, None] * column + 2 * row * S + w * row**2 * column
        crossed = 2 * T * column + square[:, :, None] * column**2
        fourth = self.fourth + crossed + np.swapaxes(crossed, 1, 2) + 4 * row * column * S + w * (row * column) ** 2
        return third, fourth

    def placed(self, at: np.ndarray, n_classes: int) -> ClassScatter:
        """The same with its classes at other positions, among others that have nothing yet."""

        def put(term: np.ndarray | None) -> Any:
            if term is None or (term is self.scatter and self.pooled):
                return term
            out = np.zeros((n_classes, *term.shape[1:]))
            out[at] = term
            return out

        return ClassScatter(*(put(term) for term in self.terms))

    def over_classes(self) -> ClassScatter:
        """All rows about their common mean, as one class."""
        if self.pooled:
            n = self.weight.sum()
            mean = self.weight @ self.mean / n
            moved = (self.mean - mean) * np.sqrt(self.weight)[:, None]
            scatter = self.scatter + (moved.T @ moved)[None]
            return ClassScatter(n[None], self.rows.sum()[None], mean[None], scatter)
        total = self._of_class(0)
        for k in range(1, len(self.weight)):
            total = total + self._of_class(k)
        return total

    def within(self) -> ClassScatter:
        """All rows about the means of their classes, as one class of mean zero."""
        scatter = self.scatter.sum(axis=0)[None]
        third, fourth = (None if t is None else t.sum(axis=0)[None] for t in (self.third, self.fourth))
        mean = np.zeros((1, self.mean.shape[1]))
        return ClassScatter(self.weight.sum()[None], self.rows.sum()[None], mean, scatter, third, fourth)

    def _of_class(self, k: int) -> ClassScatter:
        return ClassScatter(*(None if t is None else t[[k]] for t in self.terms))  # type: ignore[arg-type]

    def with_scatter(self, scatter: np.ndarray) -> ClassScatter:
        return replace(self, scatter=scatter)

    @property
    def terms(self) -> tuple[np.ndarray | None, ...]:
        return self.weight, self.rows, self.mean, self.scatter, self.third, self.fourth

    @property
    def finite(self) -> bool:
        """Whether no entry of X was missing or infinite, and no sum overflowed."""
        return all(np.isfinite(term).all() for term in self.terms if term is not None)


def scatter_statistic(batch: Batch, n_classes: int, pooled: bool, fourth: bool) -> tuple[ClassScatter]:
    """The moments of a batch whose targets are codes of classes."""
    return (scatter_of(dense_rows(batch.X), batch.y, batch.weight, n_classes, pooled, fourth),)


def scatter_of(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, n_classes: int, pooled: bool, fourth: bool = False
) -> ClassScatter:
    """The moments of rows with codes y: each class is centred by its own mean before products are taken."""
    code = y.astype(np.int16 if n_classes < 2**15 else np.int64)  # small integers are sorted by counting
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, code, weight = X[kept], code[kept], weight[kept]
    p = X.shape[1]
    order = np.argsort(code, kind="stable")
    D = X[order]
    w = np.ones(len(D)) if weight is None else weight[order]
    rows = np.bincount(code, minlength=n_classes)
    last = np.cumsum(rows)
    total, mean = np.zeros(n_classes), np.zeros((n_classes, p))
    shape = (1 if pooled else n_classes, p, p)
    scatter = np.zeros(shape)
    third, fourths = (np.zeros(shape), np.zeros(shape)) if fourth else (None, None)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused when all rows are in
        for k in np.flatnonzero(rows):
            part = slice(last[k] - rows[k], last[k])
            d, v = D[part], w[part]
            total[k] = v.sum()
            mean[k] = v @ d / total[k]
            d -= mean[k]
            rest = v @ d / total[k]  # what the rounding of the mean left
            mean[k] += rest
            d -= rest
            if fourths is not None and third is not None:
                square = d * d
                weighted = square * v[:, None]
                third[k], fourths[k] = weighted.T @ d, weighted.T @ square
            if weight is not None:
                d *= np.sqrt(v)[:, None]
            if not pooled:
                scatter[k] = d.T @ d
        if pooled:
            scatter[0] = D.T @ D
    return ClassScatter(total, rows.astype(np.float64), mean, scatter, third, fourths)
