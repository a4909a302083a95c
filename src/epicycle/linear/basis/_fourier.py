"""The Fourier basis: sin(w x) and cos(w x) for every angular frequency w."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.linear.basis._basis import Basis

__all__ = ["HarmonicBasis"]


@dataclass(frozen=True)
class HarmonicBasis(Basis):
    """For every column of X and every frequency a sine and a cosine, next to each other.

    frequencies : array of shape (p, m), in radians per unit of the column.
    """

    frequencies: np.ndarray

    @property
    def n_functions(self) -> int:
        return 2 * self.frequencies.size

    def _shifted(self, X: np.ndarray, quarter_turns: int) -> np.ndarray:
        angles = np.asarray(X, dtype=np.float64)[:, :, None] * self.frequencies
        out = np.empty((len(X), self.frequencies.size, 2))
        angles = angles.reshape(len(X), self.frequencies.size)
        sine, cosine = np.sin(angles), np.cos(angles)
        turned = [sine, cosine, -sine, -cosine]
        out[:, :, 0] = turned[quarter_turns % 4]
        out[:, :, 1] = turned[(quarter_turns + 1) % 4]
        return out.reshape(len(X), self.n_functions)

    def expand(self, X: np.ndarray) -> np.ndarray:
        return self._shifted(X, 0)

    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        factor = np.zeros_like(self.frequencies)
        factor[column] = self.frequencies[column] ** order
        return self._shifted(X, order) * np.repeat(factor.ravel(), 2)

    def names(self, features: list[str]) -> list[str]:
        return [
            f"{function}({w:.6g} {name})"
            for name, row in zip(features, self.frequencies.tolist(), strict=True)
            for w in row
            for function in ("sin", "cos")
        ]
