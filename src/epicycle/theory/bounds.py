r"""Bounds that hold for every distribution: Hoeffding, the union bound, and uniform convergence over a finite class.

For k hypotheses and m independent rows, the errors :math:`\hat\varepsilon` on the rows are within :math:`\gamma` of the
true errors :math:`\varepsilon`, for all hypotheses at once, but for a probability of

.. math:: \delta = 2 k\, e^{-2 \gamma^2 m} .

Any one of m, gamma, delta and k follows from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._checks import count, number, open_unit
from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator._catalogue import in_catalogue

__all__ = ["Convergence", "hoeffding", "uniform_convergence", "union"]


@in_catalogue("theory", "I1", certificate="a bound with its probability")
def union(probabilities: Any) -> float:
    """The union bound: the probability that any of some events happens is at most the sum of theirs.

    Parameters
    ----------
    probabilities : array-like
        Probabilities of the events, which need not be independent.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> from epicycle.theory import bounds
    >>> bounds.union([0.25, 0.125, 0.5])
    0.875
    """
    p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if not (np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()):
        raise ParameterError(f"probabilities: expected numbers in [0, 1], got {probabilities!r:.80}")
    return float(min(p.sum(), 1.0))


@dataclass(frozen=True)
class Convergence:
    """Uniform convergence: rows, distance, probability of failure and number of hypotheses.

    Attributes
    ----------
    m : int
        Rows.
    gamma : float
        How far the errors on the rows are from the true ones at most.
    delta : float
        The probability that this fails.
    k : float
        Hypotheses for which it holds at once.
    sides : int
        2 where the distance is bounded in both directions.
    span : float
        Largest value of the loss less its smallest.
    """

    m: int
    gamma: float
    delta: float
    k: float
    sides: int
    span: float

    @property
    def excess(self) -> float:
        """Bound on the excess error of the empirical minimiser over the best hypothesis of the class."""
        return 2 * self.gamma

    def __str__(self) -> str:
        many = "the error" if self.k == 1 else f"the errors of all {self.k:g} hypotheses"
        where = "within" if self.sides == 2 else "below that on the rows plus"
        return f"with {self.m} rows {many} is {where} {self.gamma:.3g}, but for a probability of {self.delta:.3g}"


@in_catalogue("theory", "I1", certificate="a bound with its probability")
def hoeffding(
    *, m: int | None = None, gamma: float | None = None, delta: float | None = None, sides: int = 2, span: float = 1.0
) -> Convergence:
    r"""Hoeffding's inequality, :math:`P(|\hat\phi - \phi| > \gamma) \le 2 e^{-2 \gamma^2 m}`, for one mean.

    Parameters
    ----------
    m, gamma, delta : numbers
        Two of rows, distance and probability; the third follows.
    sides : {1, 2}, default=2
        Whether the distance is bounded in one direction or in both.
    span : float, default=1.0
        Largest value of the averaged quantity less its smallest.

    Examples
    --------
    >>> from epicycle.theory import bounds
    >>> bounds.hoeffding(gamma=0.05, delta=0.05).m
    738
    """
    return uniform_convergence(m=m, gamma=gamma, delta=delta, k=1, sides=sides, span=span)


@in_catalogue("theory", "I1", certificate="a bound with its probability")
def uniform_convergence(
    *,
    m: int | None = None,
    gamma: float | None = None,
    delta: float | None = None,
    k: float | None = None,
    sides: int = 2,
    span: float = 1.0,
) -> Convergence:
    """Compute one of rows, distance, probability and number of hypotheses from the other three.

    Parameters
    ----------
    m : int, optional
        Rows; the least number that suffices where it is left out.
    gamma : float, optional
        Distance between the errors on the rows and the true ones.
    delta : float, optional
        Probability that some hypothesis is farther off.
    k : float, optional
        Hypotheses; the largest number that is allowed where it is left out.
    sides, span
        As for :func:`hoeffding`.

    Examples
    --------
    >>> from epicycle.theory import bounds
    >>> bounds.uniform_convergence(gamma=0.05, delta=0.05, k=10_000).m
    2580
    >>> round(bounds.uniform_convergence(m=2580, delta=0.05, k=10_000).gamma, 4)
    0.05
    """
    given = {"m": m, "gamma": gamma, "delta": delta, "k": k}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise ParameterError(f"m, gamma, delta, k: expected all but one of them, {missing or 'none'} left out")
    if sides not in (1, 2):
        raise ParameterError(f"sides={sides!r}; expected 1 or 2")
    if number("span", span) <= 0:
        raise ParameterError(f"span={span!r}; expected a number > 0")
    rows = 0 if m is None else count("m", m, low=1)
    distance = np.nan if gamma is None else number("gamma", gamma, low=np.finfo(float).tiny) / span
    failure = np.nan if delta is None else open_unit("delta", delta)
    many = np.nan if k is None else number("k", k, low=1.0)
    if m is None:
        rows = int(np.ceil(np.log(sides * many / failure) / (2 * distance**2)))
    elif gamma is None:
        distance = float(np.sqrt(np.log(sides * many / failure) / (2 * rows)))
    elif delta is None:
        failure = float(min(sides * many * np.exp(-2 * distance**2 * rows), 1.0))
    else:
        with np.errstate(over="ignore"):
            many = float(np.floor(failure / sides * np.exp(2 * distance**2 * rows)))
    return Convergence(rows, distance * span, failure, many, sides, float(span))
