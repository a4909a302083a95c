"""Penalties R(x): the terms added to a loss to keep the parameters small.

Each gives its value, its proximal map  prox_{tR}(v) = argmin_x R(x) + |x - v|^2 / (2 t),  its conjugate
R*(u) = sup_x u'x - R(x),  the shortest element of g + dR(x), which is zero exactly where x minimises a smooth function
of gradient g plus R, and, where it is smooth, its gradient. Weights are one number for all coordinates or one for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epicycle.core._exceptions import ParameterError

Array = NDArray[np.float64]


class Penalty(ABC):
    """A convex, separable penalty."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether R has a gradient everywhere."""

    @property
    def strong_convexity(self) -> float:
        """The smallest curvature over all coordinates."""
        return 0.0

    @abstractmethod
    def value(self, x: Array) -> float:
        """R(x)."""

    def gradient(self, x: Array) -> Array:
        """R'(x), for a smooth penalty."""
        raise TypeError(f"{self!r} has no gradient where a coordinate is zero; use its proximal map")

    @abstractmethod
    def subgradient(self, x: Array, g: Array) -> Array:
        """The shortest element of g + dR(x)."""

    def distance(self, x: Array, g: Array) -> float:
        """The distance of 0 from g + dR(x): the optimality condition of f + R at x, with g the gradient of f."""
        return float(np.linalg.norm(self.subgradient(x, g)))

    @abstractmethod
    def prox(self, v: Array, step: float = 1.0) -> Array:
        """The minimiser of R(x) + |x - v|^2 / (2 step)."""

    @abstractmethod
    def conjugate(self, u: Array) -> float:
        """R*(u); inf outside its domain."""


class NoPenalty(Penalty):
    """R(x) = 0."""

    smooth = True

    def value(self, x: Array) -> float:
        return 0.0

    def gradient(self, x: Array) -> Array:
        return np.zeros(np.shape(x))

    def subgradient(self, x: Array, g: Array) -> Array:
        return np.array(g, dtype=np.float64)

    def prox(self, v: Array, step: float = 1.0) -> Array:
        return np.array(v, dtype=np.float64)

    def conjugate(self, u: Array) -> float:
        return 0.0 if not np.any(u) else np.inf

    def __repr__(self) -> str:
        return "NoPenalty()"


class ElasticNet(Penalty):
    """R(x) = sum_j l1_j |x_j| + l2_j x_j^2 / 2, and inf where a coordinate is negative and may not be.

    Parameters
    ----------
    l1, l2 : float or array of shape (d,)
        Non-negative weights.
    positive : bool
        Whether the coordinates have to be non-negative.
    """

    #: Name of the parameter for messages, where a penalty has only one.
    _named: ClassVar[str] = ""

    def __init__(self, l1: float | Array = 1.0, l2: float | Array = 1.0, *, positive: bool = False) -> None:
        self.l1, self.l2 = np.asarray(l1, dtype=np.float64), np.asarray(l2, dtype=np.float64)
        self.positive = positive
        for name, weights in (("l1", self.l1), ("l2", self.l2)):
            # The minimum shows nan, -inf and negative weights, the maximum inf.
            if weights.ndim > 1 or not (weights.min(initial=0.0) >= 0 and weights.max(initial=0.0) < np.inf):
                raise ParameterError(
                    f"{self._named or name} must be finite and non-negative, one number or one per coordinate; got "
                    f"{weights!r}"
                )

    @property
    def smooth(self) -> bool:
        return not (self.positive or self.l1.any())

    @property
    def strong_convexity(self) -> float:
        return float(self.l2.min())

    @property
    def any(self) -> bool:
        """Whether anything is penalised."""
        return bool(self.l1.any() or self.l2.any())

    def on(self, coordinates: NDArray[np.intp]) -> ElasticNet:
        """The penalty of some coordinates alone, where every coordinate has its own weights."""
        part = object.__new__(ElasticNet)  # these weights were checked before, and solvers ask for parts every round
        part.l1, part.l2, part.positive = self.l1[coordinates], self.l2[coordinates], self.positive
        return part

    @property
    def unpenalised(self) -> NDArray[np.intp]:
        """Coordinates without any penalty."""
        return np.flatnonzero((self.l1 == 0) & (self.l2 == 0))

    def value(self, x: Array) -> float:
        if self.positive and np.min(x, initial=0.0) < 0:
            return np.inf
        return float(np.sum(self.l1 * np.abs(x) + 0.5 * self.l2 * np.square(x)))

    def gradient(self, x: Array) -> Array:
        if not self.smooth:
            return super().gradient(x)
        return np.asarray(self.l2 * np.asarray(x, dtype=np.float64))

    def subgradient(self, x: Array, g: Array) -> Array:
        g = g + self.l2 * x
        if self.positive:
            # At x_j = 0 the subdifferential of |x_j| on x_j >= 0 is (-inf, 1].
            return np.asarray(np.where(x > 0, g + self.l1, np.minimum(g + self.l1, 0.0)))
        return least_subgradient(x, g, self.l1)

    def prox(self, v: Array, step: float = 1.0) -> Array:
        # Coordinate-wise: shrink towards zero by step * l1, then scale.
        v = np.asarray(v, dtype=np.float64)
        if self.positive:
            shrunk = np.maximum(v - step * self.l1, 0.0)
        else:
            shrunk = np.sign(v) * np.maximum(np.abs(v) - step * self.l1, 0.0)
        return np.asarray(shrunk / (1.0 + step * self.l2))

    def dual_norm(self, u: Array) -> float:
        """max_j |u_j| / l1_j, the norm dual to sum_j l1_j |x_j|; inf where u_j != 0 has no weight.

        Without an L2 term R*(u) is 0 exactly when it is at most 1, so that u / dual_norm(u) is a dual feasible point.
        """
        size = np.maximum(u, 0.0) if self.positive else np.abs(u)
        l1 = np.broadcast_to(self.l1, size.shape)
        ratio = np.divide(size, l1, out=np.where(size > 0, np.inf, 0.0), where=l1 > 0)
        return float(ratio.max(initial=0.0))

    def conjugate(self, u: Array) -> float:
        # max(|u_j| - l1_j, 0)^2 / (2 l2_j); where l2_j = 0 it is 0 inside the box |u_j| <= l1_j and inf outside.
        excess = np.maximum((u if self.positive else np.abs(u)) - self.l1, 0.0)
        l2 = np.broadcast_to(self.l2, excess.shape)
        if np.any((l2 == 0) & (excess > 0)):
            return np.inf
        return float(np.sum(np.square(excess) / (2.0 * np.where(l2 > 0, l2, 1.0))))

    def __repr__(self) -> str:
        sign = ", positive=True" if self.positive else ""
        return f"ElasticNet(l1={self.l1}, l2={self.l2}{sign})"


class L2(ElasticNet):
    """Ridge: R(x) = sum_j alpha_j x_j^2 / 2.

    Parameters
    ----------
    alpha : float or array of shape (d,)
        Non-negative weights.
    """

    _named = "alpha"

    def __init__(self, alpha: float | Array = 1.0) -> None:
        super().__init__(0.0, alpha)

    def __repr__(self) -> str:
        return f"L2(alpha={self.l2})"


class L1(ElasticNet):
    """Lasso: R(x) = sum_j alpha_j |x_j|.

    Parameters
    ----------
    alpha : float or array of shape (d,)
        Non-negative weights.
    """

    _named = "alpha"

    def __init__(self, alpha: float | Array = 1.0) -> None:
        super().__init__(alpha, 0.0)

    def __repr__(self) -> str:
        return f"L1(alpha={self.l1})"


def least_subgradient(x: Array, g: Array, l1: Array) -> Array:
    """The shortest element of g + d(sum_j l1_j |x_j|): for f of gradient g, zero exactly where x minimises f + L1."""
    return np.asarray(np.where(x != 0, g + l1 * np.sign(x), np.sign(g) * np.maximum(np.abs(g) - l1, 0.0)))
