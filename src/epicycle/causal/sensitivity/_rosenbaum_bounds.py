r"""`rosenbaum_bounds`: how far matched pairs may be from a lottery before their difference means nothing.

If the odds of treatment of two matched units differ by a factor of at most G, the sign of a pair's difference is
positive with a probability between 1/(1+G) and G/(1+G) under no effect, whatever was hidden. Wilcoxon's sum of the
ranks of positive differences then lies between two sums of independent variables, of which the normal law is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from epicycle.causal.designs._inputs import column
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@dataclass(frozen=True)
class RosenbaumBounds:
    """Bounds on the one-sided p-value of Wilcoxon's signed-rank test.

    Attributes
    ----------
    gamma : array (k,)
        Largest ratio of the odds of treatment within a pair.
    lower, upper : arrays (k,)
        Bounds on the p-value.
    critical_gamma : float
        The ratio up to which the difference stays significant at 5%, whatever was hidden; 1 where it never is.
    statistic : float
        Sum of the ranks of positive differences.
    """

    gamma: Array
    lower: Array
    upper: Array
    critical_gamma: float
    statistic: float

    def __str__(self) -> str:
        if self.critical_gamma <= 1:
            return "the difference is not significant even without hidden confounding"
        return (
            f"the difference stays significant at 5% as long as nothing hidden changes the odds of treatment within a "
            f"pair by a factor above {self.critical_gamma:.2f}"
        )


@in_catalogue("causal", "H2", certificate="none")
def rosenbaum_bounds(treated: Any, control: Any = None, *, gamma: Any = (1.0, 1.5, 2.0, 3.0)) -> RosenbaumBounds:
    r"""Rosenbaum's bounds for matched pairs, by Wilcoxon's signed-rank test that the treated are larger.

    .. math:: T = \sum_i q_i 1\{d_i > 0\}, \qquad \mathrm{E}\, T \le \frac{\Gamma}{1 + \Gamma} \sum_i q_i

    Parameters
    ----------
    treated : array (n,)
        Outcomes of the treated units, or differences where `control` is left out.
    control : array (n,), optional
        Outcomes of their partners.
    gamma : sequence of float, default=(1, 1.5, 2, 3)
        :math:`\Gamma \ge 1`.

    Examples
    --------
    >>> from epicycle.causal import rosenbaum_bounds
    >>> found = rosenbaum_bounds([5, 8, 9, 12, 7, 10, 6, 11], [3, 5, 8, 5, 1, 6, 7, 3], gamma=[1, 2])
    >>> found.upper.round(3)
    array([0.01 , 0.059])
    """
    d = column("treated", treated)
    if control is not None:
        d = d - column("control", control, len(d))
    if not d.any():
        raise DataError("treated: every difference is zero; expected some that are not")
    ratios = column("gamma", [gamma] if isinstance(gamma, Real) else gamma)
    if (ratios < 1).any():
        raise ParameterError(f"gamma={gamma!r:.80}; expected finite numbers of at least 1")
    q = np.where(d != 0, rankdata(np.abs(d)), 0.0)  # pairs without a difference are ranked, and say nothing
    T, total, squares = float(q[d > 0].sum()), float(q.sum()), float(q @ q)

    def p_value(odds: Array) -> Array:
        """Of P(d > 0) = p with these odds; T - p total is taken from the nearer end, so that nothing cancels."""
        p, q = odds / (1 + odds), 1 / (1 + odds)
        distance = np.where(p <= 0.5, T - p * total, (T - total) + q * total)
        return np.asarray(ndtr(-distance / np.sqrt(p * q * squares)))

    upper, lower = p_value(ratios), p_value(1 / ratios)
    # (T - p total)^2 = z^2 p (1 - p) squares, at the smaller root: the p at which the bound reaches 5%.
    z2 = float(ndtri(0.95)) ** 2 * squares
    a, b, c = total**2 + z2, -(2 * T * total + z2), T**2
    p = (-b - np.sqrt(max(b * b - 4 * a * c, 0.0))) / (2 * a)
    critical = max(p / (1 - p), 1.0) if p < 1 else np.inf
    return RosenbaumBounds(ratios, lower, upper, float(critical), T)
