r"""Shattering, growth and the VC dimension, decided exactly for linear classifiers.

A class shatters n points if it can give them all :math:`2^n` labellings. Whether a linear classifier gives one of them
is a linear program: find w and b with :math:`y_i (w'x_i + b) \ge 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import comb, gammaln

from epicycle.core._checks import count, number, open_unit
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.core.estimator._catalogue import in_catalogue

__all__ = [
    "Dimension",
    "bound",
    "dichotomies",
    "dimension",
    "growth",
    "margin_bound",
    "margin_dimension",
    "sauer",
    "separable",
    "shatters",
]

#: Points whose labellings are gone through.
MOST_POINTS = 20


@in_catalogue("theory", "I2", certificate="exact")
def separable(X: Any, y: Any, *, intercept: bool = True) -> bool:
    """Whether a linear classifier gives the points these labels, by linear programming.

    Parameters
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,)
        Two values at most.
    intercept : bool, default=True
        Whether the boundary may miss the origin.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> square = [[0, 0], [1, 1], [0, 1], [1, 0]]
    >>> vc.separable(square, [1, 1, 0, 0]), vc.separable(square, [1, 0, 0, 0])
    (False, True)
    """
    points = _points(X)
    labels = np.asarray(y)
    if labels.shape != (len(points),):
        raise DataError(f"y: shape {labels.shape}; expected ({len(points)},)")
    values = np.unique(labels)
    if len(values) > 2:
        raise DataError(f"y: {len(values)} values; expected two at most")
    return _separable(points, np.where(labels == values[0], -1.0, 1.0), intercept)


def _separable(points: np.ndarray, sign: np.ndarray, intercept: bool) -> bool:
    if intercept and abs(sign.sum()) == len(sign):
        return True  # all on one side of a boundary far away
    A = np.column_stack([points, np.ones(len(points))]) if intercept else points
    # Any scale of the points has the same answer; one keeps the tolerances of the solver meaningful.
    size = np.abs(A).max()
    result = linprog(
        np.zeros(A.shape[1]),
        A_ub=-sign[:, None] * A / (size or 1.0),
        b_ub=-np.ones(len(A)),
        bounds=(None, None),
        method="highs",
    )
    if result.status not in (0, 2):
        raise DataError(f"X: the linear program ended with status {result.status}, {result.message}")
    return bool(result.status == 0)


@in_catalogue("theory", "I2", certificate="exact")
def dichotomies(X: Any, *, intercept: bool = True) -> int:
    """Count the labellings of these points by linear classifiers: the growth number of the set.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> vc.dichotomies([[0, 0], [1, 1], [0, 1], [1, 0]])
    14
    """
    points = _points(X)
    return sum(2 * _separable(points, sign, intercept) for sign in _labellings(len(points)))


def _labellings(n: int) -> Iterator[np.ndarray]:
    """One of each pair of opposite labellings of n points."""
    if n > MOST_POINTS:
        raise ParameterError(f"X: {n} points have 2^{n} labellings; expected at most {MOST_POINTS} points")
    return (np.where(code >> np.arange(n) & 1, 1.0, -1.0) for code in range(2 ** (n - 1)))


@in_catalogue("theory", "I2", certificate="exact")
def shatters(X: Any, *, intercept: bool = True) -> bool:
    """Whether linear classifiers give these points every labelling.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> vc.shatters([[0, 0], [1, 0], [0, 1]]), vc.shatters([[0, 0], [1, 1], [2, 2]])
    (True, False)
    """
    points = _points(X)
    n, p = points.shape
    if n > p + intercept:
        return False  # Radon: the points are dependent, and a dependence is a labelling that no classifier gives
    return all(_separable(points, sign, intercept) for sign in _labellings(n))


@dataclass(frozen=True)
class Dimension:
    """Result of a search for the VC dimension.

    Attributes
    ----------
    value : int
        The largest number of points of which a shattered set was found.
    points : ndarray
        That set.
    tried : int
        Sets of one point more that were tried, none of them shattered.
    """

    value: int
    points: np.ndarray
    tried: int

    def __str__(self) -> str:
        return f"{self.value}: {self.value} points were shattered, none of {self.tried} sets of {self.value + 1}"


@in_catalogue("theory", "I2", certificate="exact")
def dimension(
    n_features: int,
    *,
    shattered: Callable[[np.ndarray], bool] | None = None,
    tries: int = 50,
    largest: int = 12,
    random_state: Any = 0,
) -> Dimension:
    """Search for the VC dimension: draw sets of points until none of a size is shattered.

    The result is a lower bound, proven by a drawn set; that no larger set is shattered holds for the sets tried.

    Parameters
    ----------
    n_features : int
        Coordinates of the points, drawn from a normal distribution.
    shattered : callable, optional
        ``shattered(points) -> bool`` for a class of classifiers; by default linear ones with intercept.
    tries : int, default=50
        Sets of each size.
    largest : int, default=12
        Where to end.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> [vc.dimension(p, tries=5).value for p in (1, 2, 3)]
    [2, 3, 4]
    """
    count("n_features", n_features, low=1)
    decide = shatters if shattered is None else shattered
    rng = stream(random_state, "vc")
    best = np.empty((0, n_features))
    for size in range(1, count("largest", largest, low=1) + 1):
        sets = (rng.normal(size=(size, n_features)) for _ in range(count("tries", tries, low=1)))
        found = next((points for points in sets if decide(points)), None)
        if found is None:
            return Dimension(size - 1, best, tries)
        best = found
    return Dimension(largest, best, 0)


# ------------------------------------------------------------------------------------------------ growth and bounds


@in_catalogue("theory", "I2", certificate="exact")
def growth(n: int, n_features: int, *, intercept: bool = True) -> int:
    r"""Labellings of n points in general position by linear classifiers (Cover): :math:`2 \sum_{i<d} \binom{n-1}{i}`.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> vc.growth(4, 2)
    14
    """
    d = count("n_features", n_features, low=1) + intercept
    n = count("n", n, low=1)
    return 2 * int(sum(comb(n - 1, i, exact=True) for i in range(min(d, n))))


@in_catalogue("theory", "I2", certificate="exact")
def sauer(n: int, d: int) -> int:
    r"""Sauer's lemma: a class of VC dimension d labels n points in :math:`\sum_{i \le d} \binom{n}{i}` ways at most.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> vc.sauer(4, 3), vc.sauer(3, 3)
    (15, 8)
    """
    n = count("n", n)
    return int(sum(comb(n, i, exact=True) for i in range(min(count("d", d), n) + 1)))


def _log_sauer(n: int, d: int) -> float:
    i = np.arange(min(d, n) + 1)
    return float(np.logaddexp.reduce(gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1)))


@in_catalogue("theory", "I2", certificate="a bound with its probability")
def bound(error: float, n: int, d: int, *, level: float = 0.95) -> float:
    r"""Bound the true error of the classifiers of a class of VC dimension d by the error on n rows.

    .. math:: \varepsilon \le \hat\varepsilon + \sqrt{\frac{2 \log \Pi(n)}{n}} + \sqrt{\frac{\log(1/\delta)}{2n}} ,

    with Sauer's bound for the growth function :math:`\Pi`.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> round(vc.bound(0.05, n=10_000, d=11), 3)
    0.192
    """
    rate, rows = number("error", error, low=0.0, high=1.0), count("n", n, low=1)
    delta = 1 - open_unit("level", level)
    spread = np.sqrt(2 * _log_sauer(rows, count("d", d)) / rows) + np.sqrt(np.log(1 / delta) / (2 * rows))
    return float(min(rate + spread, 1.0))


@in_catalogue("theory", "I2", certificate="exact")
def margin_dimension(radius: float, margin: float, n_features: int) -> int:
    r"""Bound the VC dimension of linear classifiers with a margin, on points in a ball.

    It is at most :math:`\min(\lceil R^2 / \gamma^2 \rceil, p) + 1`.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> vc.margin_dimension(radius=1.0, margin=0.25, n_features=10_000)
    17
    """
    if number("margin", margin) <= 0 or number("radius", radius) < 0:
        raise ParameterError(f"margin={margin!r}, radius={radius!r}; expected margin > 0 and radius >= 0")
    return int(min(np.ceil((radius / margin) ** 2), count("n_features", n_features, low=1))) + 1


@in_catalogue("theory", "I2", certificate="a bound with its probability")
def margin_bound(error: float, n: int, radius: float, margin: float, *, level: float = 0.95) -> float:
    r"""Bound the true error of a linear classifier by the share of rows within the margin.

    .. math:: \varepsilon \le \hat\varepsilon_\gamma + \frac{2 R}{\gamma \sqrt n} + \sqrt{\frac{\log(1/\delta)}{2n}} ,

    for weights of norm one, a margin :math:`\gamma` that was chosen before the rows were seen, and
    :math:`\hat\varepsilon_\gamma` the share of rows with :math:`y_i w'x_i < \gamma`. The number of features does not
    matter.

    Examples
    --------
    >>> from epicycle.theory import vc
    >>> round(vc.margin_bound(0.02, n=100_000, radius=1.0, margin=0.2), 3)
    0.055
    """
    rate, rows = number("error", error, low=0.0, high=1.0), count("n", n, low=1)
    if number("margin", margin) <= 0 or number("radius", radius) < 0:
        raise ParameterError(f"margin={margin!r}, radius={radius!r}; expected margin > 0 and radius >= 0")
    delta = 1 - open_unit("level", level)
    return float(min(rate + 2 * radius / (margin * np.sqrt(rows)) + np.sqrt(np.log(1 / delta) / (2 * rows)), 1.0))


def _points(X: Any) -> np.ndarray:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.size == 0 or not np.isfinite(points).all():
        raise DataError(f"X: expected a matrix of finite numbers, one point a row, got shape {points.shape}")
    return points
