"""Kernels of wide networks: arc-cosine kernels, and the Gaussian process and tangent kernels of a deep ReLU network.

With the angle t between x and z, J_1 = sin t + (pi - t) cos t, and J_0 = pi - t, a layer of infinitely many rectified
units maps a kernel with values q = k(x, x), q' = k(z, z) to

    E[relu(u) relu(v)] = sqrt(q q') J_1(t) / 2 pi,    E[relu'(u) relu'(v)] = J_0(t) / 2 pi,    cos t = k / sqrt(q q').

Derivatives of the first are J_0 / 2 pi by k, and sqrt(q'/q) sin t / 4 pi by q.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epicycle.core._parameters import Integer, Real
from epicycle.kernels._kernel import Domains, LeafKernel
from epicycle.kernels._prepared import Vectors, prepared_vectors
from epicycle.kernels._stationary import SQUARED, radial

Array = np.ndarray
_ROUNDING = 8 * np.finfo(np.float64).eps


def opening(A: Vectors, B: Vectors, w: float = 1.0, b: float = 0.0) -> Array:
    """v = 1 - cos t for the rows (sqrt(w) x, sqrt(b)), from distances, so that small angles keep their digits.

    |x| |z| - x'z = (|x - z|^2 - (|x| - |z|)^2) / 2. A zero row is at a right angle to all. The angle goes with the root
    of v, and of 2 - v: rounding that is left where rows lie on one line would be 1e8 times as large in it, and goes.
    """
    x, z = np.sqrt(A.squares), np.sqrt(B.squares)
    short = radial(A, B, SQUARED)
    rounding = _ROUNDING * short
    short -= np.subtract.outer(x, z) ** 2
    short[short <= rounding] = 0.0
    opposite = np.multiply.outer(4 * x, z)
    np.copyto(short, opposite, where=opposite - short <= rounding)
    short *= w / 2
    return _versine(short, w * A.squares, w * B.squares, b)


def _versine(short: Array, q: Array, r: Array, b: float) -> Array:
    """1 - k / sqrt((q + b) (r + b)) for k = sqrt(q r) - short + b."""
    lengths = np.sqrt(np.multiply.outer(q + b, r + b))
    if b > 0:
        # sqrt((q + b)(r + b)) - sqrt(q r) - b as a quotient, in which nothing cancels
        root = np.sqrt(np.multiply.outer(q, r))
        short = short + b * np.subtract.outer(np.sqrt(q), np.sqrt(r)) ** 2 / (lengths + root + b)
    v = np.divide(short, lengths, out=np.ones_like(lengths), where=lengths > 0)
    v[v >= 2.0 - _ROUNDING] = 2.0
    return np.asarray(np.clip(v, 0.0, 2.0, out=v))


def angle(v: Array) -> Array:
    """The angle whose cosine is 1 - v."""
    return 2 * np.arcsin(np.sqrt(v / 2))


def after_ramp(v: Array, t: Array) -> Array:
    """1 - J_1 / pi, of the cosine after a layer of rectified units."""
    return np.asarray(v - (np.sin(t) - t * (1 - v)) / np.pi)


@dataclass(frozen=True, repr=False)
class ArcCosine(LeafKernel):
    """The arc-cosine kernel of Cho and Saul: what a network with random weights and infinitely many units sees.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        Power of the rectified units: steps, ramps or half parabolas.
    depth : int, default=1
        How many such layers follow each other.
    """

    order: int = 1
    depth: int = 1

    _domains: ClassVar[Domains] = {"order": Integer(minimum=0, maximum=2), "depth": Integer(minimum=1)}
    accepts_sparse: ClassVar[bool] = True

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        return prepared_vectors(X, like)

    def block(self, A: Vectors, B: Vectors) -> Array:
        v, q, r = opening(A, B), A.squares, B.squares
        for _ in range(self.depth):
            t = angle(v)
            if self.order == 0:
                v = np.where(
                    np.multiply.outer(q, r) > 0,
                    t / np.pi,
                    1 - 0.5 / np.sqrt(np.multiply.outer(*map(self._next, (q, r)))),
                )
            elif self.order == 1:
                v = after_ramp(v, t)
            else:
                v = (np.pi * (4 * v - 2 * v**2) + t * (3 - 4 * v + 2 * v**2) - 1.5 * np.sin(2 * t)) / (3 * np.pi)
            q, r = self._next(q), self._next(r)
        return np.asarray((1 - v) * np.sqrt(np.multiply.outer(q, r)))

    def _next(self, q: Array) -> Array:
        """k(x, x) after a layer; for order 0 a zero row is at a right angle even to itself."""
        return np.where(q > 0, 1.0, 0.5) if self.order == 0 else q if self.order == 1 else 3 * q**2

    def prepared_diagonal(self, A: Vectors) -> Array:
        q = A.squares.copy()
        for _ in range(self.depth):
            q = self._next(q)
        return q


@dataclass(frozen=True, repr=False)
class _DeepRelu(LeafKernel):
    """A fully connected network of `depth` hidden layers with weights N(0, weight_variance / fan-in)."""

    depth: int = 1
    weight_variance: float = 2.0
    bias_variance: float = 0.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("weight_variance", "bias_variance")
    _domains: ClassVar[Domains] = {
        "depth": Integer(minimum=1),
        "weight_variance": Real(minimum=0, inclusive=False),
        "bias_variance": Real(minimum=0),
    }
    accepts_sparse: ClassVar[bool] = True
    _tangent: ClassVar[bool]

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        return prepared_vectors(X, like, scale=float(np.sqrt(X.shape[1])))

    def block(self, A: Vectors, B: Vectors) -> Array:
        w, b = self.weight_variance, self.bias_variance
        v, q, r = opening(A, B, w, b), w * A.squares + b, w * B.squares + b
        tangent = (1 - v) * np.sqrt(np.multiply.outer(q, r))
        for _ in range(self.depth):
            t = angle(v)
            short = w / 2 * after_ramp(v, t) * np.sqrt(np.multiply.outer(q, r))
            v = _versine(short, w * q / 2, w * r / 2, b)
            q, r = b + w * q / 2, b + w * r / 2
            if self._tangent:
                tangent = (1 - v) * np.sqrt(np.multiply.outer(q, r)) + w / (2 * np.pi) * (np.pi - t) * tangent
        return tangent if self._tangent else (1 - v) * np.sqrt(np.multiply.outer(q, r))

    def prepared_diagonal(self, A: Vectors) -> Array:
        w, b = self.weight_variance, self.bias_variance
        q = w * A.squares + b
        tangent = q
        for _ in range(self.depth):
            half = np.where(q > 0, 0.5, 0.25)  # a zero row is at a right angle to itself
            q = b + w * q / 2
            tangent = q + w * half * tangent
        return tangent if self._tangent else q

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        """The recursion of `block` differentiated by the logarithm of one of the variances, layer by layer."""
        w, b = self.weight_variance, self.bias_variance
        by_w, by_b = (w, 0.0) if name == "weight_variance" else (0.0, b)
        s = A.squares
        v, q = opening(A, A, w, b), w * s + b
        lengths = np.sqrt(np.multiply.outer(q, q))
        k = (1 - v) * lengths
        dk, dq = by_w * (k - b) / w + by_b, by_w * s + by_b
        tangent, d_tangent = k, dk
        for _ in range(self.depth):
            t = angle(v)
            sine, J0 = np.sin(t), (np.pi - t) / (2 * np.pi)
            relu = (1 - after_ramp(v, t)) * lengths / 2
            relative = np.divide(dq, q, out=np.zeros_like(q), where=q > 0)  # d log q
            d_lengths = lengths * np.add.outer(relative, relative) / 2
            d_relu = J0 * dk + sine / (2 * np.pi) * d_lengths
            if self._tangent:
                # d cos t, which vanishes where the rows are parallel, together with its divisor
                turn = np.divide(dk - (1 - v) * d_lengths, lengths, out=np.zeros_like(k), where=lengths > 0)
                d_J0 = np.divide(turn, 2 * np.pi * sine, out=np.zeros_like(k), where=sine > 1e-7)
            dk = by_b + by_w * relu + w * d_relu
            if self._tangent:
                d_tangent = dk + by_w * J0 * tangent + w * (d_J0 * tangent + J0 * d_tangent)
            v = _versine(w / 2 * after_ramp(v, t) * lengths, w * q / 2, w * q / 2, b)
            q, dq = b + w * q / 2, by_b + by_w * q / 2 + w * dq / 2
            lengths = np.sqrt(np.multiply.outer(q, q))
            k = (1 - v) * lengths
            if self._tangent:
                tangent = k + w * J0 * tangent
        yield d_tangent if self._tangent else dk


@dataclass(frozen=True, repr=False)
class NNGP(_DeepRelu):
    """The kernel of the Gaussian process that a deep ReLU network with random weights is, in the limit of width.

    Parameters
    ----------
    depth : int, default=1
        Hidden layers.
    weight_variance, bias_variance : float, default=2.0 and 0.0
        Variance of the weights (over their number) and of the biases.
    bounds : mapping, "fixed" or None, default=None
        The intervals of the variances for a search; default (1e-5, 1e5). A bias variance of 0 stays 0.
    """

    _tangent = False


@dataclass(frozen=True, repr=False)
class NeuralTangent(_DeepRelu):
    """The neural tangent kernel of a deep ReLU network: its training by gradient descent is kernel regression with it.

    Parameters
    ----------
    depth : int, default=1
        Hidden layers.
    weight_variance, bias_variance : float, default=2.0 and 0.0
        Variance of the weights (over their number) and of the biases at the start.
    bounds : mapping, "fixed" or None, default=None
        The intervals of the variances for a search; default (1e-5, 1e5). A bias variance of 0 stays 0.
    """

    _tangent = True
