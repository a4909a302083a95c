r"""Sets of effects that the Anderson-Rubin test does not reject; they stay valid with instruments of any strength.

With g(b) = Z'(y - b d) and S(b) the covariance of g(b), the statistic is AR(b) = g(b)' S(b)^{-1} g(b). g is linear in
b and S quadratic, so that AR(b) = c exactly where  det [[S(b), g(b)], [g(b)', c]] = det S(b) (c - AR(b))  vanishes: a
quadratic eigenvalue problem, of which the real eigenvalues are the only places where the set can begin or end.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.linalg

from epicycle.causal.designs._confidence_set import ConfidenceSet

Array = np.ndarray


@dataclass(frozen=True)
class AndersonRubin:
    """g(b) = g0 - b g1 and S(b) = S0 - b S1 + b^2 S2, with the F distribution of AR(b) / l; b is in units."""

    g: tuple[Array, Array]
    S: tuple[Array, Array, Array]
    degrees: tuple[int, float]
    unit: float = 1.0

    def statistic(self, b: float) -> float:
        """AR(b) / l, which has an F distribution where the effect is b units."""
        g = self.g[0] - b * self.g[1]
        S = self.S[0] - b * self.S[1] + b * b * self.S[2]
        return float(g @ np.linalg.lstsq(S, g, rcond=None)[0]) / self.degrees[0]

    def p_value(self, b: float) -> float:
        """Probability of so large a statistic where the effect is b."""
        from scipy.stats import f

        return float(f.sf(self.statistic(b / self.unit), *self.degrees))

    def set(self, confidence: float) -> ConfidenceSet:
        """All b that are not rejected."""
        from scipy.stats import f

        limit = float(f.ppf(confidence, *self.degrees))
        ends = self._candidates(limit * self.degrees[0])
        edges = np.concatenate([[-np.inf], ends, [np.inf]])
        inside = [self.statistic(_between(low, high)) <= limit for low, high in pairwise(edges)]
        found: list[list[float]] = []
        for (low, high), kept in zip(pairwise(edges), inside, strict=True):
            if not kept:
                continue
            if found and found[-1][1] == low:
                found[-1][1] = float(high)
            else:
                found.append([float(low), float(high)])
        return ConfidenceSet(np.array(found).reshape(-1, 2) * self.unit, confidence)

    def _candidates(self, c: float) -> Array:
        """Real zeros of det S(b) (c - AR(b)), in units in which S(b) is of size 1."""
        l = len(self.g[0])  # noqa: E741
        size = [max(np.abs(S).max(), np.finfo(float).tiny) for S in (self.S[0], self.S[2])]
        unit, root = np.sqrt(size[0] / size[1]), np.sqrt(size[0])
        M = [np.zeros((l + 1, l + 1)) for _ in range(3)]
        for power, S in enumerate(self.S):
            M[power][:l, :l] = (-1) ** power * S * unit**power / size[0]
        for power, g in enumerate(self.g):
            M[power][:l, l] = M[power][l, :l] = (-1) ** power * g * unit**power / root
        M[0][l, l] = c
        nothing, one = np.zeros_like(M[0]), np.eye(l + 1)
        A, B = np.block([[nothing, one], [-M[0], -M[1]]]), np.block([[one, nothing], [nothing, M[2]]])
        numerator, denominator = scipy.linalg.eigvals(A, B, homogeneous_eigvals=True)
        finite = np.abs(denominator) > 1e-12 * np.abs(numerator)
        b = numerator[finite] / denominator[finite]
        # A double root comes back with a small imaginary part; a place too many does no harm, the sides are compared.
        return np.asarray(np.unique(b.real[np.abs(b.imag) <= 1e-6 * (1 + np.abs(b.real))]) * unit)


def _between(low: float, high: float) -> float:
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(low):
        return high - 1 - abs(high)
    if np.isinf(high):
        return low + 1 + abs(low)
    return (low + high) / 2
