"""Penalties R(x): what is added to a loss to keep the parameters small.

Each gives its value, its proximal map  prox_{tR}(v) = argmin_x R(x) + |x - v|^2 / (2 t),  its conjugate
R*(u) = sup_x u'x - R(x), and, where it is smooth, its gradient. Weights are one number for all coordinates or one for
each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from epicycle.core._exceptions import ParameterError

__all__ = ["L1", "L2", "ElasticNet", "NoPenalty", "Penalty"]

Array = np.ndarray


class Penalty(ABC):
    """A convex, separable penalty."""

    #: Whether R has a gradient everywhere.
    smooth: bool
    #: The smallest curvature over all coordinates.
    strong_convexity: float = 0.0

    @abstractmethod
    def value(self, x: Array) -> float:
        """R(x)."""

    def gradient(self, x: Array) -> Array:
        """R'(x), for a smooth penalty."""
        raise TypeError(f"{self!r} has no gradient where a coordinate is zero; use its proximal map")

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

    def prox(self, v: Array, step: float = 1.0) -> Array:
        return np.array(v, dtype=np.float64)

    def conjugate(self, u: Array) -> float:
        return 0.0 if not np.any(u) else np.inf

    def __repr__(self) -> str:
        return "NoPenalty()"


class ElasticNet(Penalty):
    """R(x) = sum_j l1_j |x_j| + l2_j x_j^2 / 2.

    Parameters
    ----------
    l1, l2 : float or array of shape (d,)
        Non-negative weights.
    """

    def __init__(self, l1: float | Array = 1.0, l2: float | Array = 1.0) -> None:
        self.l1 = _weights("l1", l1)
        self.l2 = _weights("l2", l2)
        self.smooth = not np.any(self.l1)
        self.strong_convexity = float(np.min(self.l2))

    def value(self, x: Array) -> float:
        return float(np.sum(self.l1 * np.abs(x) + 0.5 * self.l2 * np.square(x)))

    def gradient(self, x: Array) -> Array:
        if not self.smooth:
            return super().gradient(x)
        return np.asarray(self.l2 * np.asarray(x, dtype=np.float64))

    def prox(self, v: Array, step: float = 1.0) -> Array:
        # Coordinate-wise: shrink towards zero by step * l1, then scale.
        v = np.asarray(v, dtype=np.float64)
        shrunk = np.sign(v) * np.maximum(np.abs(v) - step * self.l1, 0.0)
        return np.asarray(shrunk / (1.0 + step * self.l2))

    def conjugate(self, u: Array) -> float:
        # max(|u_j| - l1_j, 0)^2 / (2 l2_j); where l2_j = 0 it is 0 inside the box |u_j| <= l1_j and inf outside.
        excess = np.maximum(np.abs(u) - self.l1, 0.0)
        l2 = np.broadcast_to(self.l2, excess.shape)
        if np.any((l2 == 0) & (excess > 0)):
            return np.inf
        return float(np.sum(np.square(excess) / (2.0 * np.where(l2 > 0, l2, 1.0))))

    def __repr__(self) -> str:
        return f"ElasticNet(l1={self.l1}, l2={self.l2})"


class L2(ElasticNet):
    """Ridge: R(x) = sum_j alpha_j x_j^2 / 2.

    Parameters
    ----------
    alpha : float or array of shape (d,)
        Non-negative weights.
    """

    def __init__(self, alpha: float | Array = 1.0) -> None:
        super().__init__(0.0, _weights("alpha", alpha))

    def __repr__(self) -> str:
        return f"L2(alpha={self.l2})"


class L1(ElasticNet):
    """Lasso: R(x) = sum_j alpha_j |x_j|.

    Parameters
    ----------
    alpha : float or array of shape (d,)
        Non-negative weights.
    """

    def __init__(self, alpha: float | Array = 1.0) -> None:
        super().__init__(_weights("alpha", alpha), 0.0)

    def __repr__(self) -> str:
        return f"L1(alpha={self.l1})"


def _weights(name: str, value: float | Array) -> Array:
    weights = np.asarray(value, dtype=np.float64)
    if weights.ndim > 1 or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ParameterError(f"{name} must be finite and non-negative, one number or one per coordinate; got {value!r}")
    return weights
