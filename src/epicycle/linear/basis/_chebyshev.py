"""Polynomials in Chebyshev's basis: T_k(u) = cos(k arccos u) on u = (x - centre) / half in [-1, 1].

Powers of x are nearly parallel to each other as vectors; Chebyshev's polynomials are nearly orthogonal, so that a
polynomial of degree 20 of x between 1,000 and 10,000 is as easy to fit as a straight line. Several columns have the
products T_a(u_1) T_b(u_2) ... of total degree up to the given one, or, without interactions, one column at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.polynomial import chebyshev

from epicycle.linear.basis._basis import Basis

__all__ = ["ChebyshevBasis", "degrees_of", "monomials", "number_of_functions"]


def number_of_functions(p: int, degree: int, *, interactions: bool) -> int:
    """How many functions there are, the constant left out."""
    return comb(p + degree, degree) - 1 if interactions else p * degree


def degrees_of(p: int, degree: int, *, interactions: bool) -> np.ndarray:
    """The degree in each column of every function, of shape (d, p), ordered by total degree."""
    rows = []
    for total in range(1, degree + 1):
        if interactions:
            for columns in combinations_with_replacement(range(p), total):
                rows.append(np.bincount(columns, minlength=p))
        else:
            rows.extend(total * np.eye(p, dtype=np.int64))
    return np.asarray(rows, dtype=np.int64).reshape(len(rows), p)


@dataclass(frozen=True)
class ChebyshevBasis(Basis):
    """Products of Chebyshev's polynomials.

    centre, half : arrays of shape (p,), the middle and half the width of the range of every column.
    degrees : array of shape (d, p).
    """

    centre: np.ndarray
    half: np.ndarray
    degrees: np.ndarray

    @property
    def n_functions(self) -> int:
        return len(self.degrees)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        """u, in float64, with the columns of X as rows."""
        U = np.array(X.T, dtype=np.float64, order="C")
        U -= self.centre[:, None]
        U /= self.half[:, None]
        return U

    def _table(self, u: np.ndarray, highest: int) -> np.ndarray:
        """T_0(u) ... T_highest(u), one row each."""
        T = np.ones((highest + 1, len(u)))
        if highest:
            T[1] = u
        for k in range(2, highest + 1):
            np.multiply(u, T[k - 1], out=T[k])
            T[k] *= 2
            T[k] -= T[k - 2]
        return T

    def expand(self, X: np.ndarray) -> np.ndarray:
        return self._products(self._tables(X), len(X))

    def _tables(self, X: np.ndarray) -> list[np.ndarray]:
        highest = self.degrees.max(axis=0, initial=0)
        return [self._table(u, int(h)) for u, h in zip(self._scaled(X), highest, strict=True)]

    def _products(self, tables: list[np.ndarray], n: int) -> np.ndarray:
        out = np.empty((self.n_functions, n))
        for i, degrees in enumerate(self.degrees):
            first, *others = np.flatnonzero(degrees)
            np.copyto(out[i], tables[first][degrees[first]])
            for j in others:
                out[i] *= tables[j][degrees[j]]
        return out.T

    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        tables = self._tables(X)
        T = tables[column]
        D = chebyshev.chebder(np.eye(len(T)), m=order) / self.half[column] ** order
        # Where the column takes no part, the derivative is zero: row 0 of the table is T_0' = 0.
        tables[column] = D.T @ T[: len(D)] if len(D) else np.zeros_like(T)
        out = np.zeros((len(X), self.n_functions))
        with_column = self.degrees[:, column] > 0
        part = ChebyshevBasis(self.centre, self.half, self.degrees[with_column])
        out[:, with_column] = part._products(tables, len(X))
        return out

    def names(self, features: list[str]) -> list[str]:
        return [
            " ".join(f"T{k}({name})" for k, name in zip(row, features, strict=True) if k)
            for row in self.degrees.tolist()
        ]


def monomials(basis: ChebyshevBasis, coef: np.ndarray, intercept: float) -> dict[tuple[int, ...], Fraction]:
    """The same polynomial in powers of x, exactly: the coefficient of x_1^a x_2^b ... under the key (a, b, ...).

    Rational arithmetic, because the conversion loses as many digits as the powers are badly conditioned.
    """
    highest = basis.degrees.max(axis=0, initial=0)
    raw = [
        [_in_powers_of_x(k, Fraction(float(c)), Fraction(float(h))) for k in range(top + 1)]
        for c, h, top in zip(basis.centre, basis.half, highest.tolist(), strict=True)
    ]
    p = len(basis.centre)
    total: dict[tuple[int, ...], Fraction] = {(0,) * p: Fraction(float(intercept))}
    for row, weight in zip(basis.degrees.tolist(), coef.tolist(), strict=True):
        terms: dict[tuple[int, ...], Fraction] = {(): Fraction(weight)}
        for j, k in enumerate(row):
            terms = {(*key, power): value * c for key, value in terms.items() for power, c in enumerate(raw[j][k]) if c}
        for key, value in terms.items():
            total[key] = total.get(key, Fraction(0)) + value
    return total


def _in_powers_of_x(k: int, centre: Fraction, half: Fraction) -> list[Fraction]:
    """The coefficients of T_k((x - centre) / half) in powers of x."""
    in_u = [Fraction(int(c)) for c in chebyshev.cheb2poly([0] * k + [1])]
    out = [Fraction(0)] * (k + 1)
    for m, c in enumerate(in_u):
        for i in range(m + 1):
            out[i] += c * comb(m, i) * (-centre) ** (m - i) / half**m
    return out
