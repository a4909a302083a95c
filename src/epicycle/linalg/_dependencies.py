"""Linear dependencies: features that are combinations of others, from the null space of the normal equations.

For every column n of the null space, X n = 0 about the mean. Gauss-Jordan elimination of these equations, from the
last feature to the first, solves them for as many features as there are equations: each of these is then given by
features that come before it, and leaving them out changes no prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

#: Entries of the null space (of features scaled to unit length) below this are rounding.
ROUNDING = 1e-7
#: Multiply-adds that elimination may cost; beyond, the features are chosen by pivoting instead.
MAX_ELIMINATION = 2e9


@dataclass(frozen=True)
class Dependencies:
    """x_j = sum_i combination[i, j] x_i about the mean, i over `independent` and j over `dependent` features."""

    independent: np.ndarray
    dependent: np.ndarray
    combination: np.ndarray

    def named(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Every dependent feature with the others that make it up; with none if it is constant."""
        return {
            names[j]: {names[i]: float(c) for i, c in zip(self.independent, column, strict=True) if c != 0}
            for j, column in zip(self.dependent, self.combination.T, strict=True)
        }


def in_words(
    named: Mapping[str, Mapping[str, float]], means: Mapping[str, float], *, intercept: bool, limit: int = 5
) -> str:
    """'again' = 2 age; 'unit' is constant; and 3 more."""
    parts = [_equation(name, others, means, intercept) for name, others in list(named.items())[:limit]]
    if len(named) > limit:
        parts.append(f"and {len(named) - limit} more")
    return "; ".join(parts)


def _equation(name: str, others: Mapping[str, float], means: Mapping[str, float], intercept: bool) -> str:
    if not others:
        return f"{name!r} is {'constant' if intercept else 'zero'}"
    terms = [(c, f" {other}") for other, c in list(others.items())[:6]]
    if intercept:
        products = [c * means[other] for other, c in others.items()]
        rest = means[name] - sum(products)
        if abs(rest) > 1e-9 * (abs(means[name]) + sum(map(abs, products))):
            terms.append((rest, ""))
    text = ""
    for c, other in terms:
        term = other.strip() if abs(c) == 1 and other else f"{abs(c):.6g}{other}"
        text += f" {'-' if c < 0 else '+'} {term}" if text else f" {'-' if c < 0 else ''}{term}"
    more = f" + {len(others) - 6} more" if len(others) > 6 else ""
    return f"{name!r} ={text}{more}"


def dependencies_of(null_space: np.ndarray, lengths: np.ndarray) -> Dependencies:
    """Solve the equations X n = 0 for the last features.

    Parameters
    ----------
    null_space : array of shape (p, m)
        Independent columns that X, about the mean, maps to zero.
    lengths : array of shape (p,)
        Lengths of the columns of X about the mean.
    """
    p, m = null_space.shape
    # In features of unit length, where entries can be compared; a feature of length zero is its own equation.
    scaled = null_space * np.where(lengths > 0, lengths, 1.0)[:, None]
    sizes = np.abs(scaled).max(axis=0)
    A = scipy.linalg.qr(scaled / np.where(sizes > 0, sizes, 1.0), mode="economic", check_finite=False)[0].T
    dependent = _eliminate(A) if float(m) * m * p <= MAX_ELIMINATION else _pivot(A)
    order = np.argsort(dependent)
    dependent, A = dependent[order], A[order]
    independent = np.setdiff1d(np.arange(p), dependent)
    C = -A[:, independent].T
    C[np.abs(C) <= ROUNDING * np.maximum(np.abs(C).max(axis=0, initial=0.0), 1.0)] = 0.0
    C *= lengths[dependent] / np.where(lengths[independent] > 0, lengths[independent], 1.0)[:, None]
    return Dependencies(independent, dependent, _tidy(C))


def _tidy(C: np.ndarray) -> np.ndarray:
    """Whole numbers and halves that were hit but for rounding."""
    halves = np.round(2 * C) / 2
    return np.where(np.abs(C - halves) <= 1e-9 * np.abs(C), halves, C)


def _eliminate(A: np.ndarray) -> np.ndarray:
    """Reduce A in place so that its pivot columns are those of the identity; returns them."""
    m, p = A.shape
    pivots: list[int] = []
    for threshold in (ROUNDING, 0.0):  # the second round only if rounding hid a pivot in the first
        for j in range(p - 1, -1, -1):
            k = len(pivots)
            if k == m:
                break
            if j in pivots:
                continue
            i = k + int(np.abs(A[k:, j]).argmax())
            if abs(A[i, j]) <= threshold:
                continue
            A[[k, i]] = A[[i, k]]
            A[k] /= A[k, j]
            factors = A[:, j].copy()
            factors[k] = 0.0
            A -= np.outer(factors, A[k])
            A[:, j] = 0.0
            A[k, j] = 1.0
            pivots.append(j)
    return np.array(pivots, dtype=np.int64)


def _pivot(A: np.ndarray) -> np.ndarray:
    """The same with the pivots of a QR factorisation, whichever features these are."""
    m = len(A)
    R, order = scipy.linalg.qr(A, mode="r", pivoting=True, check_finite=False)
    reduced = scipy.linalg.solve_triangular(R[:, :m], R, check_finite=False)
    A[:, order] = reduced
    return np.asarray(order[:m], dtype=np.int64)
