"""Constraints of parameters:  x = T(u),  log p(u) = log p(x) + log |det dT/du|  with u in all of R^k.

Samplers move u, users see x. Every constraint gives T, its inverse, the log-determinant, and the gradient in u of a
function whose gradient in x is known: J'g + grad log |det J|. All but the last take a batch in the leading axes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, logit

from epicycle.core._checks import count, number
from epicycle.core._exceptions import ParameterError, ParameterTypeError

Array = np.ndarray


class Constraint(ABC):
    """The set that a parameter lies in, and its map from an unconstrained vector.

    Attributes
    ----------
    shape : tuple of int
        Shape of the parameter.
    size : int
        Number of its unconstrained coordinates.
    """

    shape: tuple[int, ...]
    size: int

    @abstractmethod
    def constrain(self, u: Array) -> Array:
        """The parameters T(u), of shape ``(..., *shape)``, of coordinates of shape ``(..., size)``."""

    @abstractmethod
    def unconstrain(self, x: Array) -> Array:
        """The coordinates of parameters, of shape (..., size)."""

    @abstractmethod
    def log_jacobian(self, u: Array) -> Array:
        """log |det dT/du|, of shape (...)."""

    @abstractmethod
    def pull_back(self, u: Array, gradient: Array) -> Array:
        """The gradient in u of f(T(u)) + log |det dT/du|, from the gradient of f in x, at one point."""

    def contains(self, x: Array) -> bool:
        """Whether x is a point inside the set, with every number that T can give up to rounding."""
        try:
            with np.errstate(all="ignore"):
                u = self.unconstrain(x)
                again = self.constrain(u)
        except (ValueError, np.linalg.LinAlgError):
            return False
        return bool(np.isfinite(u).all() and np.allclose(again, x, rtol=1e-6, atol=1e-8))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int | np.integer) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise ParameterTypeError(f"shape={shape!r}; expected an integer or a tuple of integers")
    return tuple(count("shape", n, low=1) for n in shape)


class _Elementwise(Constraint):
    """One coordinate for each entry."""

    def __init__(self, shape: int | tuple[int, ...] = ()) -> None:
        self.shape = _shape(shape)
        self.size = int(np.prod(self.shape, dtype=int))

    def constrain(self, u: Array) -> Array:
        mapped = self._map(u)
        return mapped if len(self.shape) == 1 else mapped.reshape((*u.shape[:-1], *self.shape))

    def unconstrain(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return self._inverse(x.reshape((*x.shape[: x.ndim - len(self.shape)], self.size)))

    def log_jacobian(self, u: Array) -> Array:
        return np.asarray(self._log_slope(u).sum(axis=-1))

    def pull_back(self, u: Array, gradient: Array) -> Array:
        slope, change = self._slope(u)
        return np.asarray(slope * np.asarray(gradient, dtype=np.float64).ravel() + change)

    @abstractmethod
    def _map(self, u: Array) -> Array: ...

    @abstractmethod
    def _inverse(self, x: Array) -> Array: ...

    @abstractmethod
    def _log_slope(self, u: Array) -> Array: ...

    @abstractmethod
    def _slope(self, u: Array) -> tuple[Array, Array]:
        """dT/du, and d log|dT/du| / du."""


class Real(_Elementwise):
    """Any real numbers: x = u.

    Parameters
    ----------
    shape : int or tuple of int, default=()
        Shape of the parameter.
    """

    def _map(self, u: Array) -> Array:
        return np.array(u, dtype=np.float64)

    def _inverse(self, x: Array) -> Array:
        return np.array(x, dtype=np.float64)

    def _log_slope(self, u: Array) -> Array:
        return np.zeros_like(u)

    def _slope(self, u: Array) -> tuple[Array, Array]:
        return np.ones_like(u), np.zeros_like(u)

    def pull_back(self, u: Array, gradient: Array) -> Array:
        return np.array(gradient, dtype=np.float64).reshape(self.size)


class LowerBounded(_Elementwise):
    """Numbers above a bound: x = lower + exp(u).

    Parameters
    ----------
    lower : float
        The bound.
    shape : int or tuple of int, default=()
        Shape of the parameter.
    """

    _sign = 1.0

    def __init__(self, lower: float, shape: int | tuple[int, ...] = ()) -> None:
        super().__init__(shape)
        self._bound = number("lower", lower)

    def _map(self, u: Array) -> Array:
        return np.asarray(self._bound + self._sign * np.exp(u))

    def _inverse(self, x: Array) -> Array:
        return np.asarray(np.log(self._sign * (x - self._bound)))

    def _log_slope(self, u: Array) -> Array:
        return u

    def _slope(self, u: Array) -> tuple[Array, Array]:
        return self._sign * np.exp(u), np.ones_like(u)


class UpperBounded(LowerBounded):
    """Numbers below a bound: x = upper - exp(u).

    Parameters
    ----------
    upper : float
        The bound.
    shape : int or tuple of int, default=()
        Shape of the parameter.
    """

    _sign = -1.0

    def __init__(self, upper: float, shape: int | tuple[int, ...] = ()) -> None:
        super().__init__(number("upper", upper), shape)


class Positive(LowerBounded):
    """Numbers above zero: x = exp(u).

    Parameters
    ----------
    shape : int or tuple of int, default=()
        Shape of the parameter.
    """

    def __init__(self, shape: int | tuple[int, ...] = ()) -> None:
        super().__init__(0.0, shape)


class Interval(_Elementwise):
    """Numbers between two bounds: x = lower + (upper - lower) / (1 + exp(-u)).

    Parameters
    ----------
    lower, upper : float
        The bounds.
    shape : int or tuple of int, default=()
        Shape of the parameter.
    """

    def __init__(self, lower: float = 0.0, upper: float = 1.0, shape: int | tuple[int, ...] = ()) -> None:
        super().__init__(shape)
        self._lower, self._width = number("lower", lower), number("upper", upper) - number("lower", lower)
        if self._width <= 0:
            raise ParameterError(f"upper={upper!r}; expected a number above lower={lower!r}")

    def _map(self, u: Array) -> Array:
        return np.asarray(self._lower + self._width * expit(u))

    def _inverse(self, x: Array) -> Array:
        return np.asarray(logit((x - self._lower) / self._width))

    def _log_slope(self, u: Array) -> Array:
        return np.asarray(np.log(self._width) + log_expit(u) + log_expit(-u))

    def _slope(self, u: Array) -> tuple[Array, Array]:
        return np.asarray(self._width * expit(u) * expit(-u)), np.asarray(1 - 2 * expit(u))


class Ordered(Constraint):
    """An increasing vector: x_1 = u_1, x_k = x_{k-1} + exp(u_k).

    Parameters
    ----------
    n : int
        Number of entries.
    """

    def __init__(self, n: int) -> None:
        self.size = count("n", n, low=1)
        self.shape = (self.size,)

    def constrain(self, u: Array) -> Array:
        steps = np.concatenate([u[..., :1], np.exp(u[..., 1:])], axis=-1)
        return np.asarray(np.cumsum(steps, axis=-1))

    def unconstrain(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return np.concatenate([x[..., :1], np.log(np.diff(x, axis=-1))], axis=-1)

    def log_jacobian(self, u: Array) -> Array:
        return np.asarray(u[..., 1:].sum(axis=-1))

    def pull_back(self, u: Array, gradient: Array) -> Array:
        later = np.cumsum(np.asarray(gradient, dtype=np.float64)[::-1])[::-1]
        return np.concatenate([later[:1], later[1:] * np.exp(u[1:]) + 1.0])


class Simplex(Constraint):
    """Probabilities that add up to one, by breaking a stick: x_k = rest_k z_k, z_k = 1 / (1 + exp(log(K - k) - u_k)).

    u = 0 is the uniform distribution. The determinant is that of the first K - 1 entries.

    Parameters
    ----------
    n : int
        Number K of probabilities.
    """

    def __init__(self, n: int) -> None:
        self.shape = (count("n", n, low=2),)
        self.size = n - 1
        self._shift = np.log(np.arange(n - 1, 0, -1.0))

    def _shares(self, u: Array) -> tuple[Array, Array]:
        """z_k, and log rest_k for k = 1, ..., K."""
        v = u - self._shift
        log_rest = np.cumsum(log_expit(-v), axis=-1)
        return np.asarray(expit(v)), np.concatenate([np.zeros((*u.shape[:-1], 1)), log_rest], axis=-1)

    def constrain(self, u: Array) -> Array:
        z, log_rest = self._shares(u)
        return np.asarray(np.concatenate([z, np.ones((*u.shape[:-1], 1))], axis=-1) * np.exp(log_rest))

    def unconstrain(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        after = np.cumsum(x[..., :0:-1], axis=-1)[..., ::-1]  # sum of the entries behind k
        return np.asarray(np.log(x[..., :-1]) - np.log(after) + self._shift)

    def log_jacobian(self, u: Array) -> Array:
        v = u - self._shift
        _, log_rest = self._shares(u)
        return np.asarray((log_expit(v) + log_expit(-v) + log_rest[..., :-1]).sum(axis=-1))

    def pull_back(self, u: Array, gradient: Array) -> Array:
        g = np.asarray(gradient, dtype=np.float64)
        z, log_rest = self._shares(u)
        rest = np.exp(log_rest)
        x = np.concatenate([z, [1.0]]) * rest
        # u_k scales x_k by (1 - z_k) and every later entry and rest by -z_k.
        later = np.cumsum((g * x)[:0:-1])[::-1]
        n_later = np.arange(self.size - 1, -1, -1.0)
        return np.asarray((1 - z) * g[:-1] * x[:-1] - z * later + (1 - 2 * z) - z * n_later)


class CorrelationCholesky(Constraint):
    """The Cholesky factor L of a correlation matrix L L', by partial correlations z = tanh(u).

    L_ij = z_ij sqrt(r_ij) for j < i with r_i1 = 1, r_i,j+1 = r_ij (1 - z_ij^2), and L_ii = sqrt(r_ii). The determinant
    is that of the entries below the diagonal.

    Parameters
    ----------
    n : int
        Number of rows.
    """

    def __init__(self, n: int) -> None:
        n = count("n", n, low=2)
        self.shape, self.size = (n, n), n * (n - 1) // 2
        self._below = np.tril_indices(n, -1)

    def _partial(self, u: Array) -> Array:
        z = np.zeros((*u.shape[:-1], *self.shape))
        z[..., self._below[0], self._below[1]] = np.tanh(u)
        return z

    def _remainders(self, z: Array) -> Array:
        """r_ij: what is left of the unit length of row i before column j."""
        r = np.cumprod(1 - z**2, axis=-1)
        return np.concatenate([np.ones((*z.shape[:-1], 1)), r[..., :-1]], axis=-1)

    def constrain(self, u: Array) -> Array:
        z = self._partial(u)
        return np.asarray(np.tril(z + np.eye(self.shape[0])) * np.sqrt(self._remainders(z)))

    def unconstrain(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        left = 1 - np.cumsum(x**2, axis=-1) + x**2
        i, j = self._below
        return np.asarray(np.arctanh(x[..., i, j] / np.sqrt(left[..., i, j])))

    def log_jacobian(self, u: Array) -> Array:
        r = self._remainders(self._partial(u))
        i, j = self._below
        log_cosh = np.logaddexp(u, -u) - np.log(2)  # log(1 - tanh^2) = -2 log cosh, also where tanh rounds to 1
        return np.asarray((0.5 * np.log(r[..., i, j]) - 2 * log_cosh).sum(axis=-1))

    def pull_back(self, u: Array, gradient: Array) -> Array:
        n = self.shape[0]
        z = self._partial(u)
        r = self._remainders(z)
        G = np.asarray(gradient, dtype=np.float64)
        out = np.zeros(self.shape)
        for i in range(1, n):
            s = np.sqrt(r[i, : i + 1])
            of_r = G[i, i] / (2 * s[i])  # derivative in r_i,j+1, from the right to the left
            for j in range(i - 1, -1, -1):
                left = 1 - z[i, j] ** 2
                # L_ij = z sqrt(r) and log sqrt(r) + log(1 - z^2), the last from tanh
                out[i, j] = (G[i, j] * s[j] - 2 * z[i, j] * r[i, j] * of_r) * left - 2 * z[i, j]
                of_r = of_r * left + G[i, j] * z[i, j] / (2 * s[j]) + 1 / (2 * r[i, j])
        return out[self._below]


class Correlation(CorrelationCholesky):
    """A correlation matrix R = L L', with L as in :class:`CorrelationCholesky`.

    Parameters
    ----------
    n : int
        Number of rows.
    """

    def _factor(self, u: Array) -> Array:
        return super().constrain(u)

    def constrain(self, u: Array) -> Array:
        L = self._factor(u)
        return np.asarray(L @ np.swapaxes(L, -1, -2))

    def unconstrain(self, x: Array) -> Array:
        return super().unconstrain(np.linalg.cholesky(np.asarray(x, dtype=np.float64)))

    def _powers(self) -> Array:
        # log |det dR/dL| = sum_j (n - j) log L_jj: R_ij depends on L_ij by the factor L_jj.
        return np.arange(self.shape[0] - 1, -1, -1.0)

    def log_jacobian(self, u: Array) -> Array:
        diagonal = np.diagonal(self._factor(u), axis1=-2, axis2=-1)
        return np.asarray(super().log_jacobian(u) + np.log(diagonal) @ self._powers())

    def pull_back(self, u: Array, gradient: Array) -> Array:
        G, L = np.asarray(gradient, dtype=np.float64), self._factor(u)
        return super().pull_back(u, (G + G.T) @ L + np.diag(self._powers() / np.diagonal(L)))
