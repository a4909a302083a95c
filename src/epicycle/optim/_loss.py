"""The interface of losses: value, derivative, curvature and conjugate of l(z, y) for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss l(z, y), one value for each row."""

    #: The largest curvature that occurs for any z and y (in every direction, where z has several components); inf where
    #: the loss has a kink or no such bound.
    smoothness: float = np.inf
    #: Whether |l'''| <= l'' everywhere, so that Newton steps and decrements have bounds (Bach 2010).
    self_concordant: bool = False
    #: Whether z is the logarithm of the mean of y.
    log_link: bool = False
    #: Number of this loss in the native kernels (native/core/losses.hpp), where one of them knows it.
    native: ClassVar[int | None] = None

    @abstractmethod
    def value(self, z: Array, y: Array) -> Array:
        """l(z, y) for each row."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """dl/dz for each row, with the shape of z; at a kink one of the subgradients."""

    @abstractmethod
    def curvature(self, z: Array, y: Array) -> Array:
        """d2l/dz2 for each row, 0 at a kink; a K x K matrix per row where z has K components."""

    @abstractmethod
    def conjugate(self, a: Array, y: Array) -> Array:
        """l*(a, y) for each row; inf outside its domain."""


def real(a: ArrayLike) -> Array:
    """An array of float64."""
    return np.asarray(a, dtype=np.float64)


def within(inside: NDArray[np.bool_], value: Array) -> Array:
    """A conjugate: its value inside its domain, inf outside."""
    return np.where(inside, value, np.inf)
