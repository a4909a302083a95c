"""Kernels made of kernels: sums, products, powers and multiples of Mercer kernels are Mercer kernels again."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import InstanceOf, Integer, Real, check_parameter
from epicycle.kernels._kernel import Domains, Hyperparameter, Kernel, LeafKernel, checked_theta
from epicycle.kernels._prepared import Pair, Vectors, prepared_vectors

Array = np.ndarray


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def as_operand(value: Any) -> Kernel:
    """An operand of the algebra as a kernel: a kernel itself, a number, a Python function."""
    from epicycle.kernels._scikit_learn import ScikitLearnKernel, is_scikit_learn_kernel

    if isinstance(value, ScikitLearnKernel) or is_scikit_learn_kernel(value):
        raise ParameterTypeError(f"kernel: {value!r:.80}; expected a kernel of epicycle beside another of epicycle")
    if isinstance(value, Kernel):
        return value
    if is_number(value):
        return Constant(value)
    if callable(value):
        from epicycle.kernels._given import FunctionKernel

        return FunctionKernel(value)
    raise ParameterTypeError(f"kernel: {value!r:.80}; expected a kernel, a number or a function")


@dataclass(frozen=True, repr=False)
class Constant(LeafKernel):
    """The same value for all pairs of rows.

    Parameters
    ----------
    value : float, default=1.0
        Not negative.
    bounds : mapping, "fixed" or None, default=None
        The interval of "value" for a search; default (1e-5, 1e5).
    """

    value: float = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("value",)
    _domains: ClassVar[Domains] = {"value": Real(minimum=0)}
    accepts_sparse: ClassVar[bool] = True

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        # Beside another kernel the rows may be strings: only their number counts.
        return prepared_vectors(np.zeros((len(X) if X.ndim == 1 else X.shape[0], 1)), None)

    def block(self, A: Vectors, B: Vectors) -> Array:
        return np.full((A.n_rows, B.n_rows), self.value)

    def prepared_diagonal(self, A: Vectors) -> Array:
        return np.full(A.n_rows, self.value)

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        yield self.block(A, A)

    def features(self, A: Vectors, B: Vectors) -> tuple[Any, Any]:
        root = np.sqrt(self.value)
        return np.full((A.n_rows, 1), root), np.full((B.n_rows, 1), root)

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        return np.zeros((n, n_columns))


@dataclass(frozen=True, repr=False)
class _OfTwo(Kernel):
    """A kernel made of two."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            check_parameter(type(self).__name__, name, getattr(self, name), InstanceOf(Kernel))
        kinds = {k.takes for k in (self.left, self.right) if not isinstance(k, Constant)}
        if len(kinds) > 1:
            raise ParameterError(
                f"{type(self).__name__}: left={self.left!r:.60} takes {self.left.takes}, right={self.right!r:.60} "
                f"takes {self.right.takes}; expected the same rows for both"
            )

    @property
    def takes(self) -> Literal["vectors", "strings", "precomputed"]:  # type: ignore[override]
        return self.right.takes if isinstance(self.left, Constant) else self.left.takes

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.left.accepts_sparse and self.right.accepts_sparse

    @property
    def mercer(self) -> bool:  # type: ignore[override]
        return self.left.mercer and self.right.mercer

    def prepare(self, X: Any, like: Pair | None = None) -> Pair:
        first, second = (None, None) if like is None else (like.left, like.right)
        return Pair(self.left.prepare(X, first), self.right.prepare(X, second))

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        return tuple(
            replace(h, name=f"{side}.{h.name}")
            for side in ("left", "right")
            for h in getattr(self, side).hyperparameters
        )

    def with_theta(self, theta: Any) -> Self:
        values = checked_theta(self, theta)
        split = len(self.left.theta)
        return type(self)(self.left.with_theta(values[:split]), self.right.with_theta(values[split:]))


@dataclass(frozen=True, repr=False)
class Sum(_OfTwo):
    """k1(x, z) + k2(x, z): features side by side.

    Parameters
    ----------
    left, right : Kernel
    """

    def block(self, A: Pair, B: Pair) -> Array:
        K = self.left.block(A.left, B.left)
        K += self.right.block(A.right, B.right)
        return K

    def prepared_diagonal(self, A: Pair) -> Array:
        return np.asarray(self.left.prepared_diagonal(A.left) + self.right.prepared_diagonal(A.right))

    def gradients(self, A: Pair) -> Iterator[Array]:
        yield from self.left.gradients(A.left)
        yield from self.right.gradients(A.right)

    def contract_between(self, A: Pair, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        first = self.left.contract_between(A.left, rows, cols, W)
        return np.concatenate([first, self.right.contract_between(A.right, rows, cols, W)])

    def gradients_times(self, A: Pair, rows: Array, cols: Array, V: Array, K: Array | None = None) -> Array:
        first = self.left.gradients_times(A.left, rows, cols, V)
        return np.concatenate([first, self.right.gradients_times(A.right, rows, cols, V)])

    def features(self, A: Pair, B: Pair) -> tuple[Any, Any]:
        first, second = self.left.features(A.left, B.left), self.right.features(A.right, B.right)
        return _beside(first[0], second[0]), _beside(first[1], second[1])

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        """Draws of each with the probability that is its share of k(0)."""
        origin = np.zeros((1, n_columns))
        first, second = (float(k.diagonal(origin)[0]) for k in (self.left, self.right))
        chosen = rng.random(n) * (first + second) < first
        drawn = [k.spectral_frequencies(n_columns, n, rng) for k in (self.left, self.right)]
        return np.where(chosen[:, None], *drawn)

    def __repr__(self) -> str:
        return f"{self.left!r} + {_in_brackets(self.right, Sum)}"


@dataclass(frozen=True, repr=False)
class Product(_OfTwo):
    """k1(x, z) k2(x, z): all products of a feature of one and a feature of the other.

    Parameters
    ----------
    left, right : Kernel
    """

    def block(self, A: Pair, B: Pair) -> Array:
        K = self.left.block(A.left, B.left)
        K *= self.right.block(A.right, B.right)
        return K

    def prepared_diagonal(self, A: Pair) -> Array:
        return np.asarray(self.left.prepared_diagonal(A.left) * self.right.prepared_diagonal(A.right))

    def gradients(self, A: Pair) -> Iterator[Array]:
        first, second = (self.left, A.left), (self.right, A.right)
        for (kernel, mine), (other, its) in ((first, second), (second, first)):
            if len(kernel.theta):
                K = other.block(its, its)
                yield from (G * K for G in kernel.gradients(mine))

    def contract_between(self, A: Pair, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        parts = [np.empty(0)]
        first, second = (self.left, A.left), (self.right, A.right)
        for (kernel, mine), (other, its) in ((first, second), (second, first)):
            if len(kernel.theta):
                parts.append(kernel.contract_between(mine, rows, cols, W * other.block(its.take(rows), its.take(cols))))
        return np.concatenate(parts)

    def features(self, A: Pair, B: Pair) -> tuple[Any, Any]:
        first, second = self.left.features(A.left, B.left), self.right.features(A.right, B.right)
        return _all_products(first[0], second[0]), _all_products(first[1], second[1])

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        """Sums of independent draws: the spectral density of a product is a convolution."""
        drawn = [k.spectral_frequencies(n_columns, n, rng) for k in (self.left, self.right)]
        return np.asarray(drawn[0] + drawn[1])

    def __repr__(self) -> str:
        return f"{_in_brackets(self.left, Sum)} * {_in_brackets(self.right, Sum, Product, Scaled)}"


class _OfOne(Kernel):
    """A kernel made of another."""

    kernel: Kernel

    @property
    def takes(self) -> Literal["vectors", "strings", "precomputed"]:  # type: ignore[override]
        return self.kernel.takes

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.kernel.accepts_sparse

    @property
    def mercer(self) -> bool:  # type: ignore[override]
        return self.kernel.mercer

    def prepare(self, X: Any, like: Any = None) -> Any:
        return self.kernel.prepare(X, like)

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        return tuple(replace(h, name=f"kernel.{h.name}") for h in self.kernel.hyperparameters)

    def with_theta(self, theta: Any) -> Self:
        return replace(self, kernel=self.kernel.with_theta(theta))  # type: ignore[type-var]


@dataclass(frozen=True, repr=False)
class Scaled(_OfOne):
    """variance times k(x, z).

    Parameters
    ----------
    kernel : Kernel
    variance : float, default=1.0
    bounds : mapping, "fixed" or None, default=None
        The interval of "variance" for a search; default (1e-5, 1e5).
    """

    kernel: Kernel
    variance: float = 1.0
    bounds: Any = None

    def __post_init__(self) -> None:
        check_parameter("Scaled", "kernel", self.kernel, InstanceOf(Kernel))
        check_parameter("Scaled", "variance", self.variance, Real(minimum=0, inclusive=False))
        factor = Constant(self.variance, bounds=_renamed(self.bounds))
        object.__setattr__(self, "variance", factor.value)
        object.__setattr__(self, "bounds", tuple(("variance", pair) for _, pair in factor.bounds))

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        (own,) = Constant(self.variance, bounds=_renamed(self.bounds)).hyperparameters
        return (replace(own, name="variance"), *super().hyperparameters)

    def with_theta(self, theta: Any) -> Self:
        values = checked_theta(self, theta)
        own = self.hyperparameters[0].size
        variance = float(np.exp(values[0])) if own else self.variance
        return replace(self, variance=variance, kernel=self.kernel.with_theta(values[own:]))

    def block(self, A: Any, B: Any) -> Array:
        K = self.kernel.block(A, B)
        K *= self.variance
        return K

    def prepared_diagonal(self, A: Any) -> Array:
        return self.variance * self.kernel.prepared_diagonal(A)

    def gradients(self, A: Any) -> Iterator[Array]:
        if self.hyperparameters[0].size:
            yield self.block(A, A)
        for G in self.kernel.gradients(A):
            yield self.variance * G

    def contract_between(self, A: Any, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        own = bool(self.hyperparameters[0].size)
        if K is None and own:
            K = self.block(A.take(rows), A.take(cols))
        within = None if K is None else K / self.variance
        inner = self.variance * self.kernel.contract_between(A, rows, cols, W, within)
        return np.concatenate([[float(np.vdot(W, K))], inner]) if own else inner

    def gradients_times(self, A: Any, rows: Array, cols: Array, V: Array, K: Array | None = None) -> Array:
        own = bool(self.hyperparameters[0].size)
        if K is None and own:
            K = self.block(A.take(rows), A.take(cols))
        within = None if K is None else K / self.variance
        inner = self.variance * self.kernel.gradients_times(A, rows, cols, V, within)
        return np.concatenate([(K @ V)[None], inner]) if own else inner

    def features(self, A: Any, B: Any) -> tuple[Any, Any]:
        root = np.sqrt(self.variance)
        first, second = self.kernel.features(A, B)
        return first * root, second * root

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        return self.kernel.spectral_frequencies(n_columns, n, rng)

    def __repr__(self) -> str:
        if self.bounds:
            shown = {name: "fixed" if pair is None else pair for name, pair in self.bounds}
            return f"Scaled({self.kernel!r}, {self.variance!r}, bounds={shown!r})"
        return f"{self.variance!r} * {_in_brackets(self.kernel, Sum, Product, Scaled)}"


def _renamed(bounds: Any) -> Any:
    """Bounds of "variance" as those of the "value" of a constant; anything else is refused there, by name."""
    if isinstance(bounds, tuple):
        return tuple(("value", pair) for _, pair in bounds)
    if isinstance(bounds, dict) and set(bounds) <= {"variance"}:
        return {"value": bounds["variance"]} if bounds else {}
    if isinstance(bounds, dict):
        raise ParameterError(f"Scaled: bounds={bounds!r:.80}; expected 'variance' as its only name")
    return bounds


@dataclass(frozen=True, repr=False)
class Power(_OfOne):
    """k(x, z) to a whole power.

    Parameters
    ----------
    kernel : Kernel
    exponent : int, default=2
        At least 1; other powers of a Mercer kernel need not be one.
    """

    kernel: Kernel
    exponent: int = 2

    def __post_init__(self) -> None:
        check_parameter("Power", "kernel", self.kernel, InstanceOf(Kernel))
        check_parameter("Power", "exponent", self.exponent, Integer(minimum=1))
        object.__setattr__(self, "exponent", int(self.exponent))

    def block(self, A: Any, B: Any) -> Array:
        return self.kernel.block(A, B) ** self.exponent

    def prepared_diagonal(self, A: Any) -> Array:
        return self.kernel.prepared_diagonal(A) ** self.exponent

    def gradients(self, A: Any) -> Iterator[Array]:
        if len(self.kernel.theta):
            slope = self.exponent * self.kernel.block(A, A) ** (self.exponent - 1)
            for G in self.kernel.gradients(A):
                yield slope * G

    def contract_between(self, A: Any, rows: Array, cols: Array, W: Array, K: Array | None = None) -> Array:
        if not len(self.kernel.theta):
            return np.empty(0)
        inner = self.kernel.block(A.take(rows), A.take(cols))
        slope = self.exponent * inner ** (self.exponent - 1)
        return self.kernel.contract_between(A, rows, cols, W * slope, inner)

    def features(self, A: Any, B: Any) -> tuple[Any, Any]:
        first, second = self.kernel.features(A, B)
        powers = first, second
        for _ in range(self.exponent - 1):
            powers = _all_products(powers[0], first), _all_products(powers[1], second)
        return powers

    def spectral_frequencies(self, n_columns: int, n: int, rng: np.random.Generator) -> Array:
        return sum((self.kernel.spectral_frequencies(n_columns, n, rng) for _ in range(self.exponent)), np.zeros(()))

    def __repr__(self) -> str:
        return f"{_in_brackets(self.kernel, Sum, Product, Scaled, Power)} ** {self.exponent}"


@dataclass(frozen=True, repr=False)
class Normalized(_OfOne):
    """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine of the angle between the features.

    A row without features, k(x, x) = 0, has the kernel 0 with all rows, itself too.

    Parameters
    ----------
    kernel : Kernel
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        check_parameter("Normalized", "kernel", self.kernel, InstanceOf(Kernel))

    def _inverse_lengths(self, A: Any) -> Array:
        squares = self.kernel.prepared_diagonal(A)
        return np.asarray(
            np.divide(1.0, np.sqrt(np.maximum(squares, 0)), out=np.zeros(len(squares)), where=squares > 0)
        )

    def block(self, A: Any, B: Any) -> Array:
        K = self.kernel.block(A, B)
        K *= self._inverse_lengths(A)[:, None]
        K *= self._inverse_lengths(B)
        return K

    def prepared_diagonal(self, A: Any) -> Array:
        return np.where(self.kernel.prepared_diagonal(A) > 0, 1.0, 0.0)

    def gradients(self, A: Any) -> Iterator[Array]:
        if not len(self.kernel.theta):
            return
        inverse = self._inverse_lengths(A)
        K = self.block(A, A)
        for G in self.kernel.gradients(A):
            relative = np.diagonal(G) * inverse**2
            yield G * np.multiply.outer(inverse, inverse) - K * np.add.outer(relative, relative) / 2

    def features(self, A: Any, B: Any) -> tuple[Any, Any]:
        first, second = self.kernel.features(A, B)
        return _times(self._inverse_lengths(A), first), _times(self._inverse_lengths(B), second)

    def __repr__(self) -> str:
        return f"Normalized({self.kernel!r})"


def _in_brackets(kernel: Kernel, *classes: type) -> str:
    """A kernel as it is written inside of another: in brackets where the order of operations would be another."""
    return f"({kernel!r})" if isinstance(kernel, classes) else repr(kernel)


def _times(factors: Array, features: Any) -> Any:
    return sp.csr_array(features.multiply(factors[:, None])) if sp.issparse(features) else factors[:, None] * features


def _beside(first: Any, second: Any) -> Any:
    if sp.issparse(first) or sp.issparse(second):
        return sp.hstack([sp.csr_array(first), sp.csr_array(second)], format="csr")
    return np.hstack([first, second])


def _all_products(first: Any, second: Any) -> Any:
    n, terms = first.shape[0], first.shape[1] * second.shape[1]
    require_memory(8.0 * n * terms, f"{terms:,} products of features of {n:,} rows", "use the kernel itself")
    first = first.toarray() if sp.issparse(first) else first
    second = second.toarray() if sp.issparse(second) else second
    return (first[:, :, None] * second[:, None, :]).reshape(n, terms)
