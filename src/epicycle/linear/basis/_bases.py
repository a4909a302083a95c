"""Bases of functions: a basis is a map from the columns of X to more columns, computed block by block.

Nothing here is ever as long as the data: a batch is expanded a few thousand rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import chebyshev

from epicycle.core._exceptions import DataError
from epicycle.data import Batch

_PIECE_BYTES = 1 << 20


class Basis(ABC):
    """Functions phi_1 ... phi_d of a row x; the constant is not among them."""

    @property
    @abstractmethod
    def n_functions(self) -> int:
        """d."""

    @abstractmethod
    def expand(self, X: np.ndarray) -> np.ndarray:
        """phi(x) of every row, of shape (n, d), in float64."""

    @abstractmethod
    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        """The derivative of that order of phi with respect to one column of X, of shape (n, d)."""

    @abstractmethod
    def names(self, features: list[str]) -> list[str]:
        """Names of the functions."""


def expanded_pieces(batch: Batch, basis: Basis) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows of the batch, phi of these rows), in order, about a mebibyte at a time."""
    rows = max(_PIECE_BYTES // (8 * max(basis.n_functions, 1)), 2 * basis.n_functions, 512)
    for start in range(0, batch.n_rows, rows):
        part = slice(start, min(start + rows, batch.n_rows))
        yield part, basis.expand(np.asarray(batch.X[part], dtype=np.float64))


def predict_batch(batch: Batch, basis: Basis, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """b + W phi(x) for every row, in the type of X: coef has shape (d, k), intercept (k,)."""
    out = np.empty((batch.n_rows, coef.shape[1]), dtype=batch.X.dtype)
    for part, phi in expanded_pieces(batch, basis):
        out[part] = phi @ coef + intercept
    return out


# --------------------------------------------------------------------------------------------------------------------
# Polynomials in Chebyshev's basis: T_k(u) = cos(k arccos u) on u = (x - centre) / half in [-1, 1].
#
# Powers of x are nearly parallel to each other as vectors; Chebyshev's polynomials are nearly orthogonal, so that a
# polynomial of degree 20 of x between 1,000 and 10,000 is as easy to fit as a straight line. Several columns have the
# products T_a(u_1) T_b(u_2) ... of total degree up to the given one, or, without interactions, one column at a time.


def number_of_functions(p: int, degree: int, *, interactions: bool) -> int:
    """Number of functions, the constant left out."""
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


# --------------------------------------------------------------------------------------------------------------------
# The Fourier basis: sin(w x) and cos(w x) for every angular frequency w.


@dataclass(frozen=True)
class HarmonicBasis(Basis):
    """For every column of X and every frequency a sine and a cosine, next to each other.

    frequencies : array of shape (p, m), in radians per unit of the column.
    """

    frequencies: np.ndarray

    @property
    def n_functions(self) -> int:
        return 2 * self.frequencies.size

    def _shifted(self, X: np.ndarray, quarter_turns: int) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            angles = np.asarray(X, dtype=np.float64)[:, :, None] * self.frequencies
        if not np.isfinite(angles).all():
            highest = float(np.abs(self.frequencies).max())
            raise DataError(
                f"X: its values times the frequency {highest:g} are beyond floating point; expected lower frequencies, "
                "that is a longer period"
            )
        out = np.empty((len(X), self.frequencies.size, 2))
        angles = angles.reshape(len(X), self.frequencies.size)
        sine, cosine = np.sin(angles), np.cos(angles)
        turned = [sine, cosine, -sine, -cosine]
        out[:, :, 0] = turned[quarter_turns % 4]
        out[:, :, 1] = turned[(quarter_turns + 1) % 4]
        return out.reshape(len(X), self.n_functions)

    def expand(self, X: np.ndarray) -> np.ndarray:
        return self._shifted(X, 0)

    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        factor = np.zeros_like(self.frequencies)
        factor[column] = self.frequencies[column] ** order
        return np.asarray(self._shifted(X, order) * np.repeat(factor.ravel(), 2))

    def names(self, features: list[str]) -> list[str]:
        return [
            f"{function}({w:.6g} {name})"
            for name, row in zip(features, self.frequencies.tolist(), strict=True)
            for w in row
            for function in ("sin", "cos")
        ]


# --------------------------------------------------------------------------------------------------------------------
# Linear splines in the hinge basis: x, and max(0, x - a_k) for every knot a_k.
#
# The coefficient of x is the slope before the first knot, that of a hinge the change of slope at its knot.


@dataclass(frozen=True)
class HingeBasis(Basis):
    """The columns of X, where `linear`, then the hinges of all knots.

    knots : array of shape (m,), ascending for every column.
    owners : array of shape (m,), the column of X to which a knot belongs.
    n_features : number of columns of X.
    """

    knots: np.ndarray
    owners: np.ndarray
    n_features: int
    linear: bool = True

    @property
    def n_functions(self) -> int:
        return len(self.knots) + (self.n_features if self.linear else 0)

    def _hinges(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(np.asarray(np.take(X, self.owners, axis=1), dtype=np.float64) - self.knots)

    def expand(self, X: np.ndarray) -> np.ndarray:
        # Function by function, each in one piece of memory, as the factorisation wants them.
        first = self.n_features if self.linear else 0
        out = np.empty((self.n_functions, len(X)))
        columns = np.array(X.T, dtype=np.float64, order="C")
        out[:first] = columns[:first]
        for i, (j, knot) in enumerate(zip(self.owners.tolist(), self.knots.tolist(), strict=True)):
            np.subtract(columns[j], knot, out=out[first + i])
        np.maximum(out[first:], 0.0, out=out[first:])
        return out.T

    def expand_sparse(self, X: np.ndarray) -> sp.csr_array:
        """The same, with the zeros of the hinges left out."""
        hinges = sp.csr_array(np.maximum(self._hinges(X), 0.0))
        return sp.hstack([sp.csr_array(X), hinges], format="csr") if self.linear else hinges

    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        """From the right at a knot. Of order two and higher it is zero everywhere else."""
        out = np.zeros((len(X), self.n_functions))
        if order > 1:
            return out
        first = self.n_features if self.linear else 0
        if self.linear:
            out[:, column] = 1.0
        out[:, first:] = (self._hinges(X) >= 0) & (self.owners == column)
        return out

    def names(self, features: list[str]) -> list[str]:
        hinges = [f"({features[j]} - {knot:.6g})+" for j, knot in zip(self.owners.tolist(), self.knots, strict=True)]
        return [*features, *hinges] if self.linear else hinges
