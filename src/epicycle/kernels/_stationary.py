"""Kernels of the distance: Gaussian, Matern, rational quadratic; Laplacian and periodic.

With s = sum_d (x_d - z_d)^2 / l_d^2 a radial kernel is k = f(s), and with g(s) = -2 f'(s)

    dk / d log l_d = g(s) (x_d - z_d)^2 / l_d^2,        dk / d log l = g(s) s  for one scale l.

For the gradient of a likelihood, M = W o g(s) contracts all scales at once by products of matrices,

    sum_ij M_ij (x_id - x_jd)^2 = 2 sum_i (M 1)_i x_id^2 - 2 sum_i x_id (M X)_id        (M symmetric).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._parameters import Real
from epicycle.kernels._kernel import Domains, LeafKernel, positive_numbers
from epicycle.kernels._prepared import Vectors, inner_products, prepared_vectors, squared_lengths

Array = np.ndarray
_CANCELLED = 1e-5  # as in the native code: below this share of the lengths a distance has lost its digits
_PAIRS = 4096  # of rows whose differences are computed at a time
_DIRECT_COLUMNS = 4  # up to so many columns distances are sums of differences at once
SQUARED, GAUSSIAN, MATERN12, MATERN32, MATERN52, RATIONAL = range(6)


def radial(A: Vectors, B: Vectors, kind: int, parameter: float = 1.0) -> Array:
    """A function of the squared distances; those that would cancel are computed from differences."""
    dense = not (sp.issparse(A.values) or sp.issparse(B.values))
    if dense and A.values.shape[1] <= _DIRECT_COLUMNS:
        D = _native.kernel.columns_block(A.values, np.ascontiguousarray(B.values.T), 0, 0.0)
        return _function_of(D, kind, parameter)
    G = inner_products(A, B)
    if dense:
        _native.kernel.radial_block(G, A.squares, B.squares, A.values, B.values, kind, parameter)
        return G
    _native.kernel.radial_block(G, A.squares, B.squares, None, None, SQUARED, 0.0)
    near = np.argwhere(np.add.outer(A.squares, B.squares) * _CANCELLED > G)
    for start in range(0, len(near), _PAIRS):
        i, j = near[start : start + _PAIRS].T
        G[i, j] = squared_lengths(sp.csr_array(A.values[i]) - sp.csr_array(B.values[j]))
    return _function_of(G, kind, parameter)


def _function_of(D: Array, kind: int, parameter: float) -> Array:
    """In place, from squared distances s: as |a|^2 = 0, |b|^2 = 0 and a'b = -s / 2."""
    if kind != SQUARED:
        flat = D.reshape(1, -1)
        flat *= -0.5
        _native.kernel.radial_block(flat, np.zeros(1), np.zeros(flat.shape[1]), None, None, kind, parameter)
    return D


class Radial(LeafKernel):
    """A function of the scaled distance."""

    accepts_sparse: ClassVar[bool] = True
    length_scale: float | tuple[float, ...]

    #: Number of the function in the native code, and its parameter.
    _kind: tuple[int, float]

    @abstractmethod
    def _slope(self, s: Array) -> Array:
        """g(s) = -2 f'(s)."""

    def __post_init__(self) -> None:
        if self._domains:
            super().__post_init__()
        self._set(length_scale=positive_numbers(type(self).__name__, "length_scale", self.length_scale))

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        scale = self.length_scale
        return prepared_vectors(X, like, centre=True, scale=np.asarray(scale) if isinstance(scale, tuple) else scale)

    def block(self, A: Vectors, B: Vectors) -> Array:
        return radial(A, B, *self._kind)

    def prepared_diagonal(self, A: Vectors) -> Array:
        return np.ones(A.n_rows)

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        s = radial(A, A, SQUARED)
        if not isinstance(self.length_scale, tuple):
            yield self._slope(s) * s
            return
        slope = self._slope(s)
        for d in range(A.n_columns):
            x = A.values[:, [d]].toarray()[:, 0] if sp.issparse(A.values) else A.values[:, d]
            yield slope * np.subtract.outer(x, x) ** 2

    def contract_between(self, A: Vectors, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        if [h.name for h in self.hyperparameters if h.size] != ["length_scale"]:
            return super().contract_between(A, rows, cols, W, K)
        return self._between(A.take(rows), A.take(cols), W, K)

    def gradients_times(self, A: Vectors, rows: Array, cols: Array, V: Array, K: Array | None = None) -> Array:
        own = [h.name for h in self.hyperparameters if h.size]
        if own != ["length_scale"] or not isinstance(self.length_scale, tuple) or sp.issparse(A.values):
            return super().gradients_times(A, rows, cols, V, K)
        B, C = A.take(rows), A.take(cols)
        X, Z, (m, t) = B.values, C.values, V.shape
        # (x - z)^2 = x^2 - 2 x z + z^2: one product for V, all z V and all z^2 V
        powers = np.concatenate([np.ones((m, 1)), Z, Z * Z], axis=1)
        found = (self._slopes(B, C, K) @ (powers[:, :, None] * V[:, None, :]).reshape(m, -1)).reshape(len(X), -1, t)
        p = X.shape[1]
        x = X[:, :, None]
        return np.asarray((x * x * found[:, :1] - 2 * x * found[:, 1 : p + 1] + found[:, p + 1 :]).transpose(1, 0, 2))

    def _slopes(self, A: Vectors, B: Vectors, K: Array | None) -> Array:
        """g(s) of all pairs, of which K are the kernels where they are known."""
        return self._slope(radial(A, B, SQUARED))

    def _between(self, A: Vectors, B: Vectors, W: Array, K: Array | None) -> Array:
        if not isinstance(self.length_scale, tuple):
            s = radial(A, B, SQUARED)
            return np.array([float(np.vdot(W, self._slope(s) * s))])
        M = W * self._slopes(A, B, K)
        X, Z = A.values, B.values
        squares = [v.multiply(v) if sp.issparse(v) else v * v for v in (X, Z)]
        cross = X.multiply(M @ Z).sum(axis=0) if sp.issparse(X) else np.einsum("ij,ij->j", X, M @ Z)
        ends = np.asarray(squares[0].T @ M.sum(axis=1)).ravel() + np.asarray(squares[1].T @ M.sum(axis=0)).ravel()
        return np.asarray(ends - 2 * np.asarray(cross).ravel())


@dataclass(frozen=True, repr=False)
class Gaussian(Radial):
    r"""The Gaussian kernel :math:`\exp(-\tfrac12 \sum_d (x_d - z_d)^2 / l_d^2)`.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        One scale l, or one for each column (automatic relevance determination). ``gamma`` of the form
        :math:`e^{-\gamma |x - z|^2}` is :math:`1 / 2 l^2`.
    bounds : mapping, "fixed" or None, default=None
        The interval of "length_scale" for a search; default (1e-5, 1e5).

    Examples
    --------
    >>> from epicycle.kernel import Gaussian
    >>> Gaussian(length_scale=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    length_scale: Any = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("length_scale",)
    _kind = (GAUSSIAN, 0.0)

    def _slope(self, s: Array) -> Array:
        return np.exp(-0.5 * s)

    def _slopes(self, A: Vectors, B: Vectors, K: Array | None) -> Array:
        return self.block(A, B) if K is None else K

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.standard_normal((n, n_columns)) / np.asarray(self.length_scale))


class _Half(Real):
    """0.5, 1.5 or 2.5."""

    def accepts(self, value: object) -> bool:
        return super().accepts(value) and value in (0.5, 1.5, 2.5)

    def describe(self) -> str:
        return "0.5, 1.5 or 2.5"


@dataclass(frozen=True, repr=False)
class Matern(Radial):
    r"""The Matern kernel of smoothness 1/2, 3/2 or 5/2.

    With the scaled distance r it is :math:`e^{-r}`, :math:`(1 + \sqrt 3 r) e^{-\sqrt 3 r}` or
    :math:`(1 + \sqrt 5 r + 5 r^2 / 3) e^{-\sqrt 5 r}`: functions that are continuous, once or twice differentiable.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        One scale, or one for each column.
    nu : {0.5, 1.5, 2.5}, default=1.5
        The smoothness.
    bounds : mapping, "fixed" or None, default=None
        The interval of "length_scale" for a search; default (1e-5, 1e5).
    """

    length_scale: Any = 1.0
    nu: float = 1.5
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("length_scale",)
    _domains: ClassVar[Domains] = {"nu": _Half()}

    @property
    def _kind(self) -> tuple[int, float]:  # type: ignore[override]  # depends on nu
        return {0.5: MATERN12, 1.5: MATERN32, 2.5: MATERN52}[self.nu], 0.0

    def _slope(self, s: Array) -> Array:
        r = np.sqrt(2 * self.nu * s)
        if self.nu == 0.5:
            return np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0)  # times zero where r is
        return 3 * np.exp(-r) if self.nu == 1.5 else 5 / 3 * (1 + r) * np.exp(-r)

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((n, n_columns))  # Student's t with 2 nu degrees of freedom
        return np.asarray(
            normal / np.sqrt(rng.chisquare(2 * self.nu, (n, 1)) / (2 * self.nu)) / np.asarray(self.length_scale)
        )


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Radial):
    r"""The rational quadratic kernel :math:`(1 + s / 2\alpha)^{-\alpha}`: Gaussian kernels of many scales, mixed.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        One scale, or one for each column.
    alpha : float, default=1.0
        How much the scales are alike; the Gaussian kernel is the limit of large alpha.
    bounds : mapping, "fixed" or None, default=None
        The intervals of "length_scale" and "alpha" for a search; default (1e-5, 1e5).
    """

    length_scale: Any = 1.0
    alpha: float = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("length_scale", "alpha")
    _domains: ClassVar[Domains] = {"alpha": Real(minimum=0, inclusive=False)}

    @property
    def _kind(self) -> tuple[int, float]:  # type: ignore[override]  # depends on alpha
        return RATIONAL, self.alpha

    def _slope(self, s: Array) -> Array:
        return np.exp(-(self.alpha + 1) * np.log1p(s / (2 * self.alpha)))

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        if name == "length_scale":
            yield from super()._gradient(A, name)
            return
        u = radial(A, A, SQUARED) / (2 * self.alpha)
        yield self._by_alpha(u)

    def _by_alpha(self, u: Array) -> Array:
        """dk / d log alpha for u = s / 2 alpha."""
        return np.asarray(self.alpha * np.exp(-self.alpha * np.log1p(u)) * (u / (1 + u) - np.log1p(u)))

    def contract_between(self, A: Vectors, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        B, C = A.take(rows), A.take(cols)
        parts = []
        for h in self.hyperparameters:
            if h.size and h.name == "length_scale":
                parts.append(self._between(B, C, W, K))
            elif h.size:
                by_alpha = self._by_alpha(radial(B, C, SQUARED) / (2 * self.alpha))
                parts.append(np.array([float(np.vdot(W, by_alpha))]))
        return np.concatenate(parts) if parts else np.empty(0)

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        precision = rng.gamma(self.alpha, 1 / self.alpha, (n, 1))
        return np.asarray(rng.standard_normal((n, n_columns)) * np.sqrt(precision) / np.asarray(self.length_scale))


@dataclass(frozen=True, repr=False)
class Laplacian(LeafKernel):
    r"""The Laplacian kernel :math:`\exp(-\sum_d |x_d - z_d| / l_d)`.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        One scale, or one for each column; ``gamma`` of the form :math:`e^{-\gamma |x - z|_1}` is 1 / l.
    bounds : mapping, "fixed" or None, default=None
        The interval of "length_scale" for a search; default (1e-5, 1e5).
    """

    length_scale: Any = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("length_scale",)

    def __post_init__(self) -> None:
        self._set(length_scale=positive_numbers("Laplacian", "length_scale", self.length_scale))

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        scale = self.length_scale
        return prepared_vectors(X, like, centre=True, scale=np.asarray(scale) if isinstance(scale, tuple) else scale)

    def _distances(self, A: Vectors, B: Vectors) -> Array:
        return _native.kernel.columns_block(A.values, np.ascontiguousarray(B.values.T), 1, 0.0)

    def block(self, A: Vectors, B: Vectors) -> Array:
        D = self._distances(A, B)
        np.negative(D, out=D)
        return np.asarray(np.exp(D, out=D))

    def prepared_diagonal(self, A: Vectors) -> Array:
        return np.ones(A.n_rows)

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        D = self._distances(A, A)
        K = np.exp(-D)
        if not isinstance(self.length_scale, tuple):
            yield D * K
            return
        for d in range(A.n_columns):
            yield np.abs(np.subtract.outer(A.values[:, d], A.values[:, d])) * K

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.standard_cauchy((n, n_columns)) / np.asarray(self.length_scale))


@dataclass(frozen=True)
class Circles(Vectors):
    """Every column as points on a circle, (cos, sin) of its angle, with the columns themselves."""

    columns: np.ndarray

    def take(self, rows: Any) -> Circles:
        values, columns = np.ascontiguousarray(self.values[rows]), np.ascontiguousarray(self.columns[rows])
        return Circles(values, self.squares[rows], self.shift, columns)

    @property
    def n_columns(self) -> int:
        return int(self.columns.shape[1])


@dataclass(frozen=True, repr=False)
class Periodic(LeafKernel):
    r"""The periodic kernel :math:`\exp(-2 \sum_d \sin^2(\pi (x_d - z_d) / \text{period}) / l^2)`.

    It is the Gaussian kernel of the points (cos, sin) on the circle, and with that a Mercer kernel for any number of
    columns.

    Parameters
    ----------
    length_scale : float, default=1.0
    period : float, default=1.0
    bounds : mapping, "fixed" or None, default=None
        The intervals of "length_scale" and "period" for a search; default (1e-5, 1e5).
    """

    length_scale: float = 1.0
    period: float = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("length_scale", "period")
    _domains: ClassVar[Domains] = dict.fromkeys(("length_scale", "period"), Real(minimum=0, inclusive=False))

    def prepare(self, X: Any, like: Circles | None = None) -> Circles:
        rows = prepared_vectors(X, like, centre=True)
        angle = 2 * np.pi / self.period * rows.values
        values = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / self.length_scale
        return Circles(values, squared_lengths(values), rows.shift, rows.values)

    def block(self, A: Circles, B: Circles) -> Array:
        D = _native.kernel.columns_block(A.values, np.ascontiguousarray(B.values.T), 0, 0.0)
        D *= -0.5
        return np.asarray(np.exp(D, out=D))

    def prepared_diagonal(self, A: Circles) -> Array:
        return np.ones(A.n_rows)

    def _gradient(self, A: Circles, name: str) -> Iterator[Array]:
        K = self.block(A, A)
        if name == "length_scale":
            yield K * _native.kernel.columns_block(A.values, np.ascontiguousarray(A.values.T), 0, 0.0)
            return
        total = np.zeros_like(K)
        for x in A.columns.T:
            turn = 2 * np.pi / self.period * np.subtract.outer(x, x)
            total += turn * np.sin(turn)
        yield K * total / self.length_scale**2
