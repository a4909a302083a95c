"""Families of normal distributions q of v in R^d, for variational inference by reparametrised gradients.

With v = m + F(z), z ~ N(0, I), the bound is E[log p(v) - log q(v)]. Its gradient along the path of v alone,
E[(d log p / dv - d log q / dv) dv / d(parameters)], is unbiased, because the expected score of q is 0, and has no
variance where q is the density itself (Roeder, Wu and Duvenaud, NeurIPS 2017).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import solve_triangular

from epicycle.stats._multivariate_normal import MultivariateNormal

Array = np.ndarray


class Family(ABC):
    """A family, with the parameters of one member of it in a flat vector."""

    def __init__(self, d: int) -> None:
        self.d = d

    @property
    @abstractmethod
    def noise_size(self) -> int:
        """Length of z."""

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Array:
        """Parameters of the standard normal distribution, or of one near it."""

    @abstractmethod
    def draw(self, parameters: Array, z: Array) -> Array:
        """Rows v of rows z."""

    @abstractmethod
    def gradient(self, parameters: Array, z: Array, G: Array) -> Array:
        """The mean over rows of G dv / d(parameters)."""

    @abstractmethod
    def minus_score(self, parameters: Array, z: Array) -> Array:
        """-d log q / dv at the rows that z gives."""

    @abstractmethod
    def normal(self, parameters: Array, centre: Array, scale: Array) -> MultivariateNormal:
        """The distribution of centre + scale v, with a matrix or a vector of scales."""


class MeanField(Family):
    """Independent coordinates: v = m + exp(r) z."""

    @property
    def noise_size(self) -> int:
        return self.d

    def start(self, rng: np.random.Generator) -> Array:
        return np.zeros(2 * self.d)

    def draw(self, parameters: Array, z: Array) -> Array:
        m, r = np.split(parameters, 2)
        return np.asarray(m + np.exp(r) * z)

    def minus_score(self, parameters: Array, z: Array) -> Array:
        return np.asarray(z * np.exp(-parameters[self.d :]))

    def gradient(self, parameters: Array, z: Array, G: Array) -> Array:
        return np.concatenate([G.mean(axis=0), (G * z).mean(axis=0) * np.exp(parameters[self.d :])])

    def normal(self, parameters: Array, centre: Array, scale: Array) -> MultivariateNormal:
        m, r = np.split(parameters, 2)
        return MultivariateNormal(centre + scale * m, diagonal=(scale * np.exp(r)) ** 2)


class FullRank(Family):
    """Any covariance: v = m + L z with L lower triangular, the logarithms of its diagonal as parameters."""

    @property
    def noise_size(self) -> int:
        return self.d

    def _lower(self, parameters: Array) -> Array:
        T = parameters[self.d :].reshape(self.d, self.d)
        L = np.tril(T, -1)
        L[np.diag_indices(self.d)] = np.exp(np.diagonal(T))
        return L

    def start(self, rng: np.random.Generator) -> Array:
        return np.zeros(self.d + self.d**2)

    def draw(self, parameters: Array, z: Array) -> Array:
        return np.asarray(parameters[: self.d] + z @ self._lower(parameters).T)

    def minus_score(self, parameters: Array, z: Array) -> Array:
        return np.asarray(solve_triangular(self._lower(parameters), z.T, lower=True, trans=1).T)

    def gradient(self, parameters: Array, z: Array, G: Array) -> Array:
        T = np.tril(G.T @ z / len(z))
        T[np.diag_indices(self.d)] *= np.exp(np.diagonal(parameters[self.d :].reshape(self.d, self.d)))
        return np.concatenate([G.mean(axis=0), T.ravel()])

    def normal(self, parameters: Array, centre: Array, scale: Array) -> MultivariateNormal:
        m, L = parameters[: self.d], self._lower(parameters)
        if scale.ndim == 1:
            return MultivariateNormal(centre + scale * m, cholesky=scale[:, None] * L)
        return MultivariateNormal(centre + scale @ m, cholesky=scale @ L)


class LowRank(Family):
    """A few directions and independent noise: v = m + W a + exp(r) b with z = (a, b)."""

    def __init__(self, d: int, rank: int) -> None:
        super().__init__(d)
        self.rank = rank

    @property
    def noise_size(self) -> int:
        return self.d + self.rank

    def _parts(self, parameters: Array) -> tuple[Array, Array, Array]:
        m, r = parameters[: self.d], parameters[self.d : 2 * self.d]
        return m, np.exp(r), parameters[2 * self.d :].reshape(self.d, self.rank)

    def start(self, rng: np.random.Generator) -> Array:
        # W = 0 is a saddle point: nothing says in which direction to leave it.
        W = 0.1 * rng.standard_normal(self.d * self.rank)
        return np.concatenate([np.zeros(2 * self.d), W])

    def draw(self, parameters: Array, z: Array) -> Array:
        m, e, W = self._parts(parameters)
        return np.asarray(m + z[:, : self.rank] @ W.T + e * z[:, self.rank :])

    def minus_score(self, parameters: Array, z: Array) -> Array:
        m, e, W = self._parts(parameters)
        r = self.draw(parameters, z) - m
        # S^-1 r by Woodbury's identity
        inner = np.eye(self.rank) + (W / e[:, None] ** 2).T @ W
        return np.asarray((r - np.linalg.solve(inner, W.T @ (r / e**2).T).T @ W.T) / e**2)

    def gradient(self, parameters: Array, z: Array, G: Array) -> Array:
        _, e, _ = self._parts(parameters)
        a, b = z[:, : self.rank], z[:, self.rank :]
        return np.concatenate([G.mean(axis=0), (G * b).mean(axis=0) * e, (G.T @ a / len(z)).ravel()])

    def normal(self, parameters: Array, centre: Array, scale: Array) -> MultivariateNormal:
        m, e, W = self._parts(parameters)
        return MultivariateNormal(centre + scale * m, low_rank=scale[:, None] * W, diagonal=(scale * e) ** 2)
