"""The interface of kernels: symmetric functions k(x, z) = <phi(x), phi(z)> with hyper-parameters and their gradients.

A kernel works in two steps, so that a machine which needs many blocks of one matrix prepares its rows once:

    A = kernel.prepare(X)                  rows in the form in which the kernel compares them
    B = kernel.prepare(Z, like=A)          further rows, to be compared with those of A
    kernel.block(B, A)                     the matrix k(z_i, x_j), in float64

`A.take(rows)` gives some of the rows. ``kernel(X, Z)`` does all of it in blocks, and gives no more than was asked for.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._parameters import Integer, Real, check_parameter
from epicycle.kernels._gram import cross_matrix, gram_matrix
from epicycle.kernels._prepared import as_rows

Array = np.ndarray

#: For every name (low, high), or None for a value that stays as it is.
Bounds: TypeAlias = "tuple[tuple[str, tuple[float, float] | None], ...]"

#: The domains of the numbers of a kernel, by name.
Domains: TypeAlias = "Mapping[str, Real | Integer]"

_DEFAULT_BOUNDS = (1e-5, 1e5)  # of a search that was given none, as in scikit-learn


@dataclass(frozen=True)
class Hyperparameter:
    """One hyper-parameter of a kernel.

    Parameters
    ----------
    name : str
        Its name; in a composed kernel with the way to it, such as ``"left.length_scale"``.
    value : tuple of float
        Its value or values, larger than zero.
    bounds : tuple of float, or None
        The interval of a search; None where the value is fixed.
    """

    name: str
    value: tuple[float, ...]
    bounds: tuple[float, float] | None

    @property
    def size(self) -> int:
        """Number of entries of `theta`: 0 for a fixed value."""
        return 0 if self.bounds is None else len(self.value)

    @property
    def fixed(self) -> bool:
        """Whether the value is fixed."""
        return self.bounds is None

    @property
    def n_elements(self) -> int:
        """Number of values."""
        return len(self.value)

    @property
    def value_type(self) -> str:
        """The type of the values, as scikit-learn writes it."""
        return "numeric"


class Kernel(ABC):
    """A function k(x, z) of two rows. Kernels are immutable values, equal if class and parameters are.

    ``k1 + k2``, ``k1 * k2``, ``3.0 * k``, ``k + 3.0`` and ``k ** 2`` are kernels; a Python function on either side is
    taken as a kernel too.
    """

    #: Kind of the rows.
    takes: ClassVar[Literal["vectors", "strings", "precomputed"]]

    #: Whether equal rows are to be kept apart, because each may have a noise of its own.
    keeps_equal_rows: ClassVar[bool] = False

    #: Whether rows may be those of a sparse matrix.
    accepts_sparse: ClassVar[bool] = False

    #: Whether it is a Mercer kernel by construction; where it is not known, `is_mercer` looks at rows.
    mercer: ClassVar[bool] = True

    # ------------------------------------------------------------------------------------------- to be given

    @abstractmethod
    def prepare(self, X: Any, like: Any = None) -> Any:
        """Rows as `block` takes them; `like` are prepared rows that they will be compared with."""

    @abstractmethod
    def block(self, A: Any, B: Any) -> Array:
        """k(a_i, b_j) for prepared rows, of which B was the first: float64 of shape (n, m), new and C-contiguous."""

    @abstractmethod
    def prepared_diagonal(self, A: Any) -> Array:
        """k(a_i, a_i) for prepared rows."""

    @property
    @abstractmethod
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """All hyper-parameters, the fixed ones among them."""

    @abstractmethod
    def with_theta(self, theta: Any) -> Self:
        """The same kernel with other hyper-parameters, given as logarithms."""

    @abstractmethod
    def gradients(self, A: Any) -> Iterator[Array]:
        """dK / d theta_t for prepared rows against themselves, one matrix after the other."""

    @abstractmethod
    def features(self, A: Any, B: Any) -> tuple[Any, Any]:
        """Matrices phi(A), phi(B) with phi(A) phi(B)' = k(A, B), where phi is finite."""

    # ------------------------------------------------------------------------------------------- evaluation

    def whole_matrix(self, A: Any) -> Array | None:
        """k(a_i, a_j) of all pairs, for kernels whose rows have more in common with themselves than `block` says."""
        return None

    def __call__(self, X: Any, Z: Any = None, *, n_jobs: int | None = None) -> Array:
        """The matrix k(x_i, z_j), of rows of X against rows of Z, or against themselves.

        Parameters
        ----------
        X, Z : array, sparse matrix, data frame, or sequence of strings
        n_jobs : int, optional
            Threads; None follows the size of the work. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n, m)
            float32 if all rows are float32, otherwise float64.
        """
        rows = as_rows(X, self, "X")
        if Z is None:
            return gram_matrix(self, self.prepare(rows), _dtype(rows), n_jobs)
        others = as_rows(Z, self, "Z")
        if sp.issparse(rows) and not sp.issparse(others):
            others = sp.csr_array(others)  # rather than make dense what came sparse
        B = self.prepare(others)
        return cross_matrix(self, self.prepare(rows, like=B), B, _dtype(rows, others), n_jobs)

    def diagonal(self, X: Any) -> Array:
        """k(x_i, x_i) for every row of X, without the matrix."""
        rows = as_rows(X, self, "X")
        return self.prepared_diagonal(self.prepare(rows)).astype(_dtype(rows))

    def feature_map(self, X: Any, Z: Any = None) -> Any:
        """Explicit features phi with phi(x)'phi(z) = k(x, z), where there are finitely many.

        Parameters
        ----------
        X, Z : rows
            Features of strings and histograms depend on which of them occur: give both to compare them.

        Returns
        -------
        array or CSR matrix, or a pair of them where Z is given
        """
        rows = as_rows(X, self, "X")
        if Z is None:
            A = self.prepare(rows)
            return self.features(A, A)[0]
        B = self.prepare(as_rows(Z, self, "Z"))
        return self.features(self.prepare(rows, like=B), B)

    # ------------------------------------------------------------------------------------------- hyper-parameters

    @property
    def theta(self) -> Array:
        """Logarithms of the hyper-parameters that are not fixed."""
        return np.log([v for h in self.hyperparameters if h.bounds is not None for v in h.value] or np.empty(0))

    @property
    def theta_bounds(self) -> Array:
        """Lower and upper bounds of `theta`, of shape (n, 2)."""
        pairs = [h.bounds for h in self.hyperparameters if h.bounds is not None for _ in h.value]
        return np.log(np.asarray(pairs, dtype=np.float64).reshape(-1, 2))

    def value_and_gradient(self, X: Any) -> tuple[Array, Array]:
        """K of the rows of X, and its derivatives by `theta`: shapes (n, n) and (n_theta, n, n)."""
        rows = as_rows(X, self, "X")
        A = self.prepare(rows)
        K = gram_matrix(self, A, np.dtype(np.float64), None)
        G = list(self.gradients(A))
        return K, np.stack(G) if G else np.empty((0, *K.shape))

    def contract_between(self, A: Any, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        """sum_ij W_ij d k(a_r, a_c) / d theta_t for r = rows[i], c = cols[j]: what the gradient of a likelihood needs.

        W may have any shape and need not be symmetric. K is the tile of the kernel itself, where the caller has it.
        """
        n = len(rows)
        both = A.take(np.concatenate([rows, cols]))
        return np.array([float(np.vdot(W, G[:n, n:])) for G in self.gradients(both)])

    def gradients_times(self, A: Any, rows: Array, cols: Array, V: Array, K: Array | None = None) -> Array:
        """sum_j d k(a_r, a_c) / d theta_t V_j for r = rows[i], c = cols[j]: shape (n_theta, n_rows, columns of V)."""
        n = len(rows)
        both = A.take(np.concatenate([rows, cols]))
        found = [G[:n, n:] @ V for G in self.gradients(both)]
        return np.stack(found) if found else np.empty((0, n, V.shape[1]))

    # ------------------------------------------------------------------------------------------- algebra

    def __add__(self, other: Any) -> Kernel:
        from epicycle.kernels._compositions import Sum, as_operand

        return Sum(self, as_operand(other))

    def __radd__(self, other: Any) -> Kernel:
        from epicycle.kernels._compositions import Sum, as_operand

        return Sum(as_operand(other), self)

    def __mul__(self, other: Any) -> Kernel:
        from epicycle.kernels._compositions import Product, Scaled, as_operand, is_number

        return Scaled(self, other) if is_number(other) else Product(self, as_operand(other))

    def __rmul__(self, other: Any) -> Kernel:
        from epicycle.kernels._compositions import Product, Scaled, as_operand, is_number

        return Scaled(self, other) if is_number(other) else Product(as_operand(other), self)

    def __pow__(self, exponent: Any) -> Kernel:
        from epicycle.kernels._compositions import Power

        return Power(self, exponent)

    def normalized(self) -> Kernel:
        """k(x, z) / sqrt(k(x, x) k(z, z)), which is 1 for x = z."""
        from epicycle.kernels._compositions import Normalized

        return Normalized(self)

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        """n draws w from the spectral density, k(x - z) = k(0) E cos(w'(x - z)), of shape (n, n_columns)."""
        raise ParameterError(
            f"{type(self).__name__} has no spectral density that can be drawn from: random Fourier features need a "
            "Gaussian, Laplacian, Matern or RationalQuadratic kernel, their products and multiples; use Nystroem"
        )


def _dtype(*rows: Any) -> np.dtype[Any]:
    single = all(getattr(r, "dtype", None) == np.float32 for r in rows)
    return np.dtype(np.float32 if single else np.float64)


@dataclass(frozen=True, repr=False)
class LeafKernel(Kernel):
    """A kernel that is made of no others: a frozen dataclass whose positive fields are its hyper-parameters.

    `_searched` names those fields; a field that is zero (a constant that is left out) is fixed. `_domains` are those of
    its numbers.
    """

    takes: ClassVar[Literal["vectors", "strings", "precomputed"]] = "vectors"
    _searched: ClassVar[tuple[str, ...]] = ()
    _domains: ClassVar[Domains] = {}
    _widest: ClassVar[Mapping[str, tuple[float, float]]] = {}

    def __post_init__(self) -> None:
        values: dict[str, float] = {}
        for name, domain in self._domains.items():
            value = getattr(self, name)
            check_parameter(type(self).__name__, name, value, domain)
            values[name] = int(value) if isinstance(domain, Integer) else float(value)
        self._set(**values)

    def _set(self, **values: Any) -> None:
        """Put checked values in the place of those given, and checked bounds, while the object is being built."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
        given = getattr(self, "bounds", ())
        if given != ():
            checked = () if given is None else checked_bounds(type(self).__name__, given, self._searched, self._widest)
            object.__setattr__(self, "bounds", checked)

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        own: Bounds = getattr(self, "bounds", ())
        bounds = dict(own)
        found = []
        for name in self._searched:
            value = getattr(self, name)
            values = value if isinstance(value, tuple) else (value,)
            default = self._widest.get(name, _DEFAULT_BOUNDS)
            found.append(Hyperparameter(name, values, None if values == (0.0,) else bounds.get(name, default)))
        return tuple(found)

    def with_theta(self, theta: Any) -> Self:
        values = np.exp(checked_theta(self, theta))
        changed: dict[str, Any] = {}
        start = 0
        for h in self.hyperparameters:
            if h.size:
                part = values[start : start + h.size].tolist()
                changed[h.name] = tuple(part) if isinstance(getattr(self, h.name), tuple) else part[0]
                start += h.size
        return replace(self, **changed) if changed else self

    def gradients(self, A: Any) -> Iterator[Array]:
        for h in self.hyperparameters:
            if h.size:
                yield from self._gradient(A, h.name)

    def _gradient(self, A: Any, name: str) -> Iterator[Array]:
        """dK / d log of the hyper-parameter `name`; several matrices where it has several values."""
        raise ParameterError(f"{type(self).__name__} has no hyper-parameter {name!r}")

    def features(self, A: Any, B: Any) -> tuple[Any, Any]:
        raise ParameterTypeError(
            f"{type(self).__name__} has no finite feature map; use Nystroem, or RandomFourierFeatures"
        )

    def __repr__(self) -> str:
        parts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "bounds":
                if value:
                    shown = {name: "fixed" if pair is None else pair for name, pair in value}
                    parts.append(f"bounds={shown!r}")
            else:
                parts.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def checked_theta(kernel: Kernel, theta: Any) -> Array:
    values = np.asarray(theta, dtype=np.float64)
    size = sum(h.size for h in kernel.hyperparameters)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise ParameterError(
            f"{type(kernel).__name__}: theta={theta!r:.80}; expected {size} finite logarithms of hyper-parameters"
        )
    return values


def checked_bounds(owner: str, given: Any, names: tuple[str, ...], widest: Mapping[str, tuple[float, float]]) -> Bounds:
    """The `bounds` argument of a kernel as sorted pairs: a mapping, "fixed" for all, or None for the widest."""
    if isinstance(given, tuple):  # from another kernel, checked before
        given = {name: "fixed" if pair is None else pair for name, pair in given}
    if given is None:
        given = {}
    if given == "fixed":
        given = dict.fromkeys(names, "fixed")
    if not isinstance(given, Mapping):
        raise ParameterTypeError(
            f"{owner}: bounds={given!r:.80}; expected a mapping of names to (low, high) or 'fixed', 'fixed', or None"
        )
    if unknown := [name for name in given if name not in names]:
        raise ParameterError(f"{owner}: bounds names {unknown[0]!r}; expected names among {list(names)}")
    checked: dict[str, tuple[float, float] | None] = {}
    for name, pair in given.items():
        if isinstance(pair, str) and pair == "fixed":
            checked[name] = None
            continue
        low, high = widest.get(name, (0.0, math.inf))
        if (
            not isinstance(pair, tuple | list)
            or len(pair) != 2
            or not all(isinstance(v, numbers.Real) and 0 < float(v) < math.inf for v in pair)
            or not pair[0] <= pair[1]
            or pair[0] < low
            or pair[1] > high
        ):
            raise ParameterError(
                f"{owner}: bounds[{name!r}]={pair!r:.60}; expected two finite numbers 0 < low <= high"
                f"{'' if math.isinf(high) else f' <= {high:g}'}, or 'fixed'"
            )
        checked[name] = (float(pair[0]), float(pair[1]))
    return tuple(sorted(checked.items()))


def positive_numbers(owner: str, name: str, value: Any) -> float | tuple[float, ...]:
    """A number > 0, or a tuple of such numbers (from any sequence), for length scales."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        numbers_given = [float(value)]
    else:
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if isinstance(value, str | bytes | bool | np.bool_) or array.ndim != 1 or array.size == 0:
            raise ParameterTypeError(
                f"{owner}: {name}={value!r:.80}; expected a number > 0, or one for each column"
            ) from None
        numbers_given = array.tolist()
    for number in numbers_given:
        if not 0 < number < math.inf:  # nan too
            raise ParameterError(f"{owner}: {name}={value!r:.80}; expected finite numbers > 0")
    return numbers_given[0] if isinstance(value, numbers.Real) else tuple(numbers_given)
