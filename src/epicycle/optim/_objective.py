"""Smooth objectives as solvers see them, and the solution that a solver returns.

A solver minimises F(x) over x in R^d and knows F only through :class:`Objective`. Models write F in summation form;
`FunctionObjective` wraps plain functions. What an objective cannot do (a Hessian that is too big, rows that cannot be
drawn) it says by `capabilities`, and the solver refuses with a clear message before any work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.core._certificate import Certificate

Array = np.ndarray


@dataclass(frozen=True)
class Metric:
    """A fixed symmetric positive definite M with curvature(x) <= M near enough, to precondition first-order solvers.

    `solve(v)` gives M^-1 v; `half_solve(v)` gives L^-1 v and `half_solve_t(v)` L^-T v for M = L L'.
    """

    solve: Callable[[Array], Array]
    half_solve: Callable[[Array], Array]
    half_solve_t: Callable[[Array], Array]

    @classmethod
    def of_diagonal(cls, squares: Array) -> Metric:
        """The diagonal M of given curvatures; 1 where there is none."""
        root = np.sqrt(np.where(squares > 0, squares, 1.0)).ravel()
        return cls(lambda v: v / root**2, lambda v: v / root, lambda v: v / root)

    @classmethod
    def of_matrix(cls, M: Array) -> Metric:
        """M of shape (p, p), by its Cholesky factor; the same for every column of parameters (p, k), flattened."""
        L = scipy.linalg.cholesky(M, lower=True, check_finite=False)

        def half(v: Array, trans: int = 0) -> Array:
            V = v.reshape(len(L), -1)
            return np.asarray(scipy.linalg.solve_triangular(L, V, lower=True, trans=trans, check_finite=False).ravel())

        return cls(lambda v: half(half(v), 1), half, lambda v: half(v, 1))


class Objective(ABC):
    """A smooth convex function F of d parameters.

    Subclasses give `value_and_gradient`; the rest is optional and announced by `capabilities`
    (any of ``"hessian"``, ``"hessian_product"``, ``"minibatches"``, ``"metric"``).
    """

    size: int
    #: A certified lower bound on the curvature in every direction; 0 when there is none.
    strong_convexity: float = 0.0
    #: Whether F is a quadratic: its Hessian is the same everywhere.
    quadratic: bool = False
    #: Whether a Hessian takes hardly longer than a gradient, so that Newton's method need not do without.
    cheap_hessian: bool = False
    #: A number that F is known to stay above, against which gradients are measured; None when there is none.
    lower_bound: float | None = None
    capabilities: frozenset[str] = frozenset()

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """F(x) and its gradient."""

    def value(self, x: Array) -> float:
        """F(x)."""
        return self.value_and_gradient(x)[0]

    def second_order(self, x: Array) -> tuple[float, Array, Array]:
        """F(x), its gradient and its d x d Hessian, from one pass."""
        raise TypeError(f"{type(self).__name__} gives no Hessian")

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """The map v -> F''(x) v."""
        raise TypeError(f"{type(self).__name__} gives no Hessian products")

    def metric(self) -> Metric:
        """A fixed preconditioner."""
        raise TypeError(f"{type(self).__name__} gives no metric")

    def minibatches(self, batch_size: int, epoch: int, seed: int) -> Iterator[Callable[[Array], tuple[float, Array]]]:
        """One epoch of unbiased estimates: each item maps x to (value, gradient) on a few rows, scaled to all of F.

        The order of rows depends on (seed, epoch) alone.
        """
        raise TypeError(f"{type(self).__name__} cannot draw rows")

    def certify(self, x: Array, tol: float, value: float | None = None, gradient: Array | None = None) -> Certificate:
        """A bound on (F(x) - min F) relative to the scale of F, against `tol`.

        With strong convexity mu, F(x) - min F <= ||g||^2 / (2 mu). Otherwise only the gradient norm can be shown, which
        bounds nothing. It is relative to F(x) - lower_bound where that is known and exceeds 1, otherwise absolute: the
        size of F itself says nothing, since an F without a minimum grows without end.
        """
        if value is None or gradient is None:
            value, gradient = self.value_and_gradient(x)
        scale = max(abs(float(value)), float(np.finfo(float).tiny))
        if self.strong_convexity > 0:
            gap = float(gradient @ gradient) / (2 * float(self.strong_convexity)) / scale
            meaning = f"the objective is within {gap:.1e} of its minimum, relative"
            return Certificate("strong convexity", gap, tol, meaning)
        norm = float(np.abs(gradient).max(initial=0.0))
        if self.lower_bound is None:
            meaning = f"no partial derivative exceeds {norm:.1e}"
        else:
            norm /= max(1.0, float(value) - self.lower_bound)
            meaning = f"no partial derivative exceeds {norm:.1e}, relative to the objective above its lower bound"
        return Certificate("gradient norm", norm, tol, meaning)


class FunctionObjective(Objective):
    """An objective from plain functions of x.

    Parameters
    ----------
    value_and_gradient : callable
        x -> (F(x), gradient).
    size : int
        Number of parameters.
    hessian : callable, optional
        x -> the d x d Hessian.
    strong_convexity : float, default=0.0
        A certified lower bound on the curvature.
    quadratic : bool, default=False
        Whether F is a quadratic function.
    lower_bound : float, optional
        A number that F stays above, such as 0 for a sum of losses: gradients are then measured relative to
        max(1, F - lower_bound). Without it `tol` bounds the partial derivatives themselves.
    """

    def __init__(
        self,
        value_and_gradient: Callable[[Array], tuple[float, Array]],
        size: int,
        *,
        hessian: Callable[[Array], Array] | None = None,
        strong_convexity: float = 0.0,
        quadratic: bool = False,
        lower_bound: float | None = None,
    ) -> None:
        self._value_and_gradient = value_and_gradient
        self._hessian = hessian
        self.size = size
        self.strong_convexity = strong_convexity
        self.quadratic = quadratic
        self.lower_bound = lower_bound
        self.capabilities = frozenset({"hessian", "hessian_product"} if hessian else ())

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self._value_and_gradient(x)

    def second_order(self, x: Array) -> tuple[float, Array, Array]:
        if self._hessian is None:
            return super().second_order(x)
        return (*self._value_and_gradient(x), self._hessian(x))

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        if self._hessian is None:
            return super().hessian_product(x)
        H = self._hessian(x)
        return lambda v: H @ v
