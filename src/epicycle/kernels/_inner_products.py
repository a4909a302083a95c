"""Kernels of the inner product x'z: linear, polynomial, and the sigmoid, which is no Mercer kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial, lgamma, log
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Real
from epicycle.kernels._kernel import Domains, LeafKernel
from epicycle.kernels._prepared import Vectors, inner_products, prepared_vectors

Array = np.ndarray
_LARGEST_FACTORIAL = 170  # that a double holds


class _OfProducts(LeafKernel):
    """A function of x'z."""

    accepts_sparse: ClassVar[bool] = True

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        return prepared_vectors(X, like)

    def block(self, A: Vectors, B: Vectors) -> Array:
        return self._of(inner_products(A, B))

    def prepared_diagonal(self, A: Vectors) -> Array:
        return self._of(A.squares.copy())

    def _of(self, products: Array) -> Array:
        """The kernel from x'z, which may be written to."""
        return products


@dataclass(frozen=True, repr=False)
class Linear(_OfProducts):
    """The linear kernel x'z.

    Examples
    --------
    >>> from epicycle.kernel import Linear
    >>> Linear()([[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [11., 25.]])
    """

    def features(self, A: Vectors, B: Vectors) -> tuple[Any, Any]:
        return A.values, B.values


@dataclass(frozen=True, repr=False)
class Polynomial(_OfProducts):
    """The polynomial kernel (gamma x'z + c)^degree: all monomials up to that degree.

    Parameters
    ----------
    degree : float, default=3
        A power that is not whole is taken of gamma x'z + c >= 0 only, and need not be a Mercer kernel.
    gamma : float, default=1.0
    c : float, default=1.0
        Weight of the lower degrees; 0 leaves the monomials of exactly that degree.
    bounds : mapping, "fixed" or None, default=None
        The intervals of "gamma" and "c" for a search; default (1e-5, 1e5).

    Examples
    --------
    >>> from epicycle.kernel import Polynomial
    >>> Polynomial(2, c=0.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    """

    degree: float = 3
    gamma: float = 1.0
    c: float = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("gamma", "c")
    _domains: ClassVar[Domains] = {
        "degree": Real(minimum=0),
        "gamma": Real(minimum=0, inclusive=False),
        "c": Real(minimum=0),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree == int(self.degree):
            self._set(degree=int(self.degree))

    @property
    def mercer(self) -> bool:  # type: ignore[override]
        return isinstance(self.degree, int)

    def _of(self, products: Array) -> Array:
        products *= self.gamma
        products += self.c
        return _power(products, self.degree)

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        G = inner_products(A, A) * self.gamma
        slope = self.degree * _power(G + self.c, self.degree - 1) if self.degree else np.zeros_like(G)
        yield slope * (G if name == "gamma" else self.c)

    def features(self, A: Vectors, B: Vectors) -> tuple[Any, Any]:
        p, d = A.n_columns, self.degree
        if not isinstance(d, int):
            return super().features(A, B)
        terms = comb(p + d, d) if self.c else comb(p + d - 1, d)
        number = float(terms) if terms.bit_length() < 1000 else np.inf
        require_memory(
            8.0 * number * (A.n_rows + B.n_rows), f"{number:,.6g} monomials of {p} columns", "use the kernel"
        )
        return self._monomials(A.values), self._monomials(B.values)

    def _monomials(self, X: Any) -> Array:
        """sqrt(d! / (e_0! e_1! ... e_p!)) c^(e_0/2) gamma^((d - e_0)/2) x^e for all exponents e that add up to d."""
        X = X.toarray() if sp.issparse(X) else X
        d = int(self.degree)
        columns = []
        for degree in range(0 if self.c else d, d + 1):
            for chosen in combinations_with_replacement(range(X.shape[1]), degree):
                counts = np.unique(chosen, return_counts=True)[1]
                if d <= _LARGEST_FACTORIAL:
                    ways = float(factorial(d) / factorial(d - degree) / np.prod([factorial(int(e)) for e in counts]))
                    weight = np.sqrt(ways * self.c ** (d - degree) * self.gamma**degree)
                else:
                    ways = lgamma(d + 1) - lgamma(d - degree + 1) - sum(lgamma(int(e) + 1) for e in counts)
                    powers = degree * log(self.gamma) + ((d - degree) * log(self.c) if d > degree else 0.0)
                    weight = np.exp(np.float64(0.5 * (ways + powers)))
                columns.append(weight * X[:, list(chosen)].prod(axis=1))
        return np.column_stack(columns)


@dataclass(frozen=True, repr=False)
class Sigmoid(_OfProducts):
    """The sigmoid "kernel" tanh(gamma x'z + c), which is no Mercer kernel; `is_mercer` shows where it fails.

    Parameters
    ----------
    gamma : float, default=1.0
    c : float, default=1.0
    bounds : mapping, "fixed" or None, default=None
        The interval of "gamma" for a search; default (1e-5, 1e5).
    """

    gamma: float = 1.0
    c: float = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("gamma",)
    _domains: ClassVar[Domains] = {"gamma": Real(minimum=0, inclusive=False), "c": Real()}

    mercer: ClassVar[bool] = False

    def _of(self, products: Array) -> Array:
        products *= self.gamma
        products += self.c
        return np.asarray(np.tanh(products, out=products))

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        G = inner_products(A, A) * self.gamma
        yield G * (1 - np.tanh(G + self.c) ** 2)


def _power(x: Array, d: float) -> Array:
    """x^d by repeated multiplication, which is faster and sign-safe; for a d that is not whole of x >= 0 alone."""
    if not isinstance(d, int):
        if (x < 0).any():
            raise DataError(f"X: gamma x'z + c is negative for some rows; its power degree={d:g} does not exist")
        return np.asarray(np.power(x, d))
    result = np.ones_like(x)
    base = x
    while d:
        if d & 1:
            result = result * base
        d >>= 1
        if d:
            base = base * base
    return result
