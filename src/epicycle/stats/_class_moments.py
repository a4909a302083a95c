"""Weight, mean and sum of squares of every column in every class, without the entries that are missing.

Two of them add up by  n = a + b,  m = m_a + (m_b - m_a) b / n,  S = S_a + S_b + (m_b - m_a)^2 a b / n  (Chan, Golub and
LeVeque, 1983), which keeps its digits for columns far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native


@dataclass(frozen=True)
class ClassMoments:
    """Weight, mean and sum of squares about the mean, each of shape (n_classes, n_features)."""

    weight: np.ndarray
    mean: np.ndarray
    square: np.ndarray

    def __add__(self, other: ClassMoments) -> ClassMoments:
        n = self.weight + other.weight
        share = np.divide(other.weight, n, out=np.zeros_like(n), where=n > 0)
        d = np.where((self.weight > 0) & (other.weight > 0), other.mean - self.mean, 0.0)
        # Where one side is empty its mean is no number to go by: the other's is taken as it is.
        mean = np.where(self.weight > 0, self.mean + d * share, other.mean)
        with np.errstate(over="ignore"):  # an infinite sum of squares is refused when all rows are in
            return ClassMoments(n, mean, self.square + other.square + d**2 * self.weight * share)

    def placed(self, at: np.ndarray, n_classes: int) -> ClassMoments:
        """The same with its classes at other positions."""
        terms = []
        for term in (self.weight, self.mean, self.square):
            out = np.zeros((n_classes, term.shape[1]))
            out[at] = term
            terms.append(out)
        return ClassMoments(*terms)

    def over_classes(self) -> ClassMoments:
        """Of all rows, whatever their class: shape (1, n_features)."""
        parts = [ClassMoments(*(term[[k]] for term in self.terms)) for k in range(len(self.weight))]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    @property
    def terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.weight, self.mean, self.square


def class_moments(X: np.ndarray, code: np.ndarray, weight: np.ndarray | None, n_classes: int) -> ClassMoments:
    """The moments of rows whose classes are given by codes; NaN is a missing entry."""
    return ClassMoments(*_native.bayes.class_moments(X, code, weight, n_classes))
