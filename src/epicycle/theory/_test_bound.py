"""Bounds on the true error from the losses on a test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from epicycle.core._checks import count, number, open_unit
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.stats._binomial import largest_rate, smallest_rate

Method = Literal["auto", "binomial", "bernstein", "hoeffding"]


@dataclass(frozen=True)
class TestBound:
    """An estimate of the true error with its interval.

    Attributes
    ----------
    estimate : float
        The mean loss on the rows.
    lower, upper : float
        The true mean is between them with probability `level` at least.
    level : float
    method : str
    n : int
        Rows.
    """

    __test__ = False  # no test, whatever its name

    estimate: float
    lower: float
    upper: float
    level: float
    method: str
    n: int

    def __str__(self) -> str:
        sure = f"with probability at least {self.level:g} the mean is"
        if np.isfinite(self.lower) and self.lower > 0:
            return f"{self.estimate:.4g} on {self.n} rows; {sure} between {self.lower:.4g} and {self.upper:.4g}"
        return f"{self.estimate:.4g} on {self.n} rows; {sure} at most {self.upper:.4g}"


@in_catalogue("theory", "I5", certificate="a bound with its probability")
def test_bound(
    losses: Any = None,
    *,
    errors: int | None = None,
    n: int | None = None,
    level: float = 0.95,
    sides: int = 1,
    bounds: tuple[float, float] = (0.0, 1.0),
    method: Method = "auto",
) -> TestBound:
    r"""Bound the true error by the losses on a test set.

    Errors are counted: their number is binomial, and the bound is the largest rate :math:`p` under which so few errors
    have probability :math:`1 - \text{level}`, by inversion of the tail, which is exact. Other losses between two
    bounds have the empirical Bernstein bound of Maurer and Pontil,

    .. math:: \mu \le \hat\mu + \sqrt{\frac{2 V \log(2/\delta)}{n}} + \frac{7 (b - a) \log(2/\delta)}{3 (n - 1)} ,

    with the variance V of the losses.

    Parameters
    ----------
    losses : array-like of shape (n,), optional
        Losses of the rows; 0 and 1 (or booleans) for errors.
    errors, n : int, optional
        In place of losses, the number of errors and of rows.
    level : float, default=0.95
        Probability with which the bound holds.
    sides : {1, 2}, default=1
        1: an upper bound alone; 2: both, sharing the probability of failure.
    bounds : tuple of float, default=(0, 1)
        Between which all losses are, known beforehand.
    method : {"auto", "binomial", "bernstein", "hoeffding"}, default="auto"
        "auto" counts where all losses are 0 or 1.

    Examples
    --------
    >>> from epicycle.theory import test_bound
    >>> round(test_bound(errors=12, n=400).upper, 4)
    0.0482
    >>> print(test_bound([0.1, 0.4, 0.2, 0.3] * 50, sides=2))
    0.25 on 200 rows; with probability at least 0.95 the mean is between 0.1752 and 0.3248
    """
    delta = 1 - open_unit("level", level)
    if sides not in (1, 2):
        raise ParameterError(f"sides={sides!r}; expected 1 or 2")
    if method not in ("auto", "binomial", "bernstein", "hoeffding"):
        raise ParameterError(f"method={method!r}; expected 'auto', 'binomial', 'bernstein' or 'hoeffding'")
    low, high = number("bounds", bounds[0]), number("bounds", bounds[1])
    if not low < high:
        raise ParameterError(f"bounds={bounds!r}; expected a smaller and a larger number")
    x, wrong, rows = _checked(losses, errors, n, low, high)
    counted = x is None or ((low, high) == (0.0, 1.0) and bool(np.isin(x, (0.0, 1.0)).all()))
    if method == "binomial" and not counted:
        raise DataError("losses: method='binomial' expects zeros and ones")
    # Union bound over both sides.
    delta /= sides
    if method == "binomial" or (method == "auto" and counted):
        return TestBound(wrong / rows, *_binomial(wrong, rows, delta, sides), level, "binomial", rows)
    if x is None:
        x = np.repeat([1.0, 0.0], [wrong, rows - wrong])
    mean, span = float(x.mean()), high - low
    if method == "hoeffding":
        away = span * np.sqrt(np.log(1 / delta) / (2 * rows))
    elif rows < 2:
        away = span
    else:
        t = np.log(2 / delta)
        # Maurer and Pontil (2009), theorem 4: the empirical variance in place of the true one costs the last term.
        away = np.sqrt(2 * x.var(ddof=1) * t / rows) + 7 * span * t / (3 * (rows - 1))
    lower = max(mean - away, low) if sides == 2 else low
    return TestBound(
        mean, float(lower), float(min(mean + away, high)), level, method.replace("auto", "bernstein"), rows
    )


def _checked(losses: Any, errors: Any, n: Any, low: float, high: float) -> tuple[np.ndarray | None, int, int]:
    """Losses (None where errors are given), number of errors and number of rows."""
    if losses is None:
        if errors is None or n is None:
            raise ParameterError("losses: expected them, or both errors and n")
        wrong, rows = count("errors", errors), count("n", n, low=1)
        if wrong > rows:
            raise ParameterError(f"errors={wrong}; expected no more than n={rows}")
        return None, wrong, rows
    if errors is not None or n is not None:
        raise ParameterError("errors and n: expected none of them beside losses")
    x = np.asarray(losses, dtype=np.float64).ravel()
    if x.size == 0 or not np.isfinite(x).all():
        raise DataError("losses: expected finite numbers, at least one")
    if x.min() < low or x.max() > high:
        raise DataError(f"losses: {x.min():g} to {x.max():g}; expected all in {(low, high)!r}, the argument bounds")
    return x, int(np.count_nonzero(x)), len(x)


def _binomial(errors: int, n: int, delta: float, sides: int) -> tuple[float, float]:
    """The rates at which so few, or so many, errors have probability delta (Clopper and Pearson)."""
    lower = 0.0 if sides == 1 else smallest_rate(errors, n, delta)
    return lower, largest_rate(errors, n, delta)
