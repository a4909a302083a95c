"""How well clusters can be told apart:  J(T) = min_{f, b}  |f|^2 / 2 + C sum_i v_i |t_i - f(x_i) - b|^2.

Row i of T is the vertex t_i of a regular simplex that stands for its cluster: -1 and 1 for two clusters, of which
|t - f|^2 = (1 - t f)^2 is the squared distance of the margin from one. With K = G G', ones v the rows weighted and
centred, V^1/2 (G - mean) = U diag(s) Q' and D = s^2 / (s^2 + 1 / (2 C)),

    J(T) = tr(T'A T),      A = C V^1/2 (Pi - U D U') V^1/2,

where Pi takes away the weighted mean. Every clustering is a point  N = T T'  with unit diagonal.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

__all__ = ["Separability", "simplex"]


def simplex(k: int) -> np.ndarray:
    """The k vertices of a regular simplex around zero, of length one: shape (k, k - 1). For two: 1 and -1."""
    if k == 1:
        return np.zeros((1, 0))
    H = scipy.linalg.helmert(k).T
    return np.asarray(H * np.sqrt(k / (k - 1)))


class Separability:
    """The matrix A, never formed but for the relaxation.

    Parameters
    ----------
    G : ndarray of shape (n, r)
        A factor of the kernel matrix.
    weight : ndarray of shape (n,)
    C : float
    """

    def __init__(self, G: np.ndarray, weight: np.ndarray, C: float) -> None:
        self.weight, self.root, self.total = weight, np.sqrt(weight), float(weight.sum())
        self.mean = weight @ G / self.total
        self.U, self.s, self.Q = scipy.linalg.svd(self.root[:, None] * (G - self.mean), full_matrices=False)
        kept = self.s > 1e-13 * max(float(self.s.max(initial=0.0)), np.finfo(float).tiny)
        self.U, self.s, self.Q = np.ascontiguousarray(self.U[:, kept]), self.s[kept], self.Q[kept]
        self.C = C
        self._like = np.einsum("ij,jk,ik->i", G, (weight[:, None] * G).T @ G, G, optimize=True)

    def likeness(self, labels: np.ndarray, k: int) -> np.ndarray:
        """The mean of k(x, x')^2 over rows x of every cluster and all rows x', up to a factor."""
        loads = np.bincount(labels, weights=self.weight, minlength=k)
        sums = np.bincount(labels, weights=self.weight * self._like, minlength=k)
        return np.asarray(sums / np.maximum(loads, np.finfo(float).tiny))

    @property
    def shrinkage(self) -> np.ndarray:
        """D: how much of a component of the labels the machine reproduces."""
        return np.asarray(self.s**2 / (self.s**2 + 1 / (2 * self.C)))

    def at(self, C: float) -> Separability:
        """The same rows with another C, for free."""
        other = object.__new__(Separability)
        other.__dict__.update(self.__dict__, C=C)
        return other

    def residual(self, T: np.ndarray) -> np.ndarray:
        """T - f - b, of the best f and b."""
        centred = self.root[:, None] * (T - self.weight @ T / self.total)
        left = centred - self.U @ (self.shrinkage[:, None] * (self.U.T @ centred))
        return np.asarray(left / self.root[:, None])

    def product(self, T: np.ndarray) -> np.ndarray:
        """A T."""
        return self.C * self.weight[:, None] * self.residual(T)

    def value(self, T: np.ndarray) -> float:
        return float(np.sum(T * self.product(T)))

    def diagonal(self) -> np.ndarray:
        """Of A."""
        inside = np.einsum("ij,j,ij->i", self.U, self.shrinkage, self.U)
        return np.asarray(self.C * self.weight * (1 - self.weight / self.total - inside))

    def column(self, i: int) -> np.ndarray:
        """Of A."""
        out = -self.root * (self.U @ (self.shrinkage * self.U[i])) * self.root[i]
        out -= self.weight * self.weight[i] / self.total
        out[i] += self.weight[i]
        return np.asarray(self.C * out)

    def matrix(self) -> np.ndarray:
        """A itself."""
        A = -(self.U * self.shrinkage) @ self.U.T - np.outer(self.root, self.root) / self.total
        A[np.diag_indices(len(A))] += 1
        return np.asarray(self.C * A * np.outer(self.root, self.root))

    def machine(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(c, b) of f(x) + b = sum_i c_i k(x_i, x) + b."""
        residual = self.residual(T)
        centred = self.root[:, None] * (T - self.weight @ T / self.total)
        B = self.Q.T @ ((self.shrinkage / self.s)[:, None] * (self.U.T @ centred))
        return 2 * self.C * self.weight[:, None] * residual, self.weight @ T / self.total - self.mean @ B
