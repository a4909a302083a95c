"""Factors of covariance matrices that rounding has made singular: the smallest addition to the diagonal that helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from epicycle.core._exceptions import ConvergenceError, EpicycleWarning
from epicycle.linalg._cholesky import Factor, NotPositiveError, factor

_STEP = 10.0  # between two values of the jitter that are tried
_HALVINGS = 3  # of the last step, on the scale of logarithms: within a third of the smallest that works
T = TypeVar("T")


class JitterWarning(EpicycleWarning):
    """A covariance matrix was not positive definite to working precision; a multiple of the identity was added."""


def smallest_jitter(attempt: Callable[[float], T], scale: float, n: int, *, refine: bool = True) -> tuple[T, float]:
    """(what the attempt gives, the jitter that it took): 0, or the smallest of a ladder with which it succeeds.

    Parameters
    ----------
    attempt : callable
        jitter -> result; raises `NotPositiveError` where the jitter is too small.
    scale : float
        Mean of the diagonal; the ladder climbs from its rounding error to the diagonal itself.
    n : int
        Size of the matrix.
    refine : bool, default=True
        Whether the jitter is then made smaller within its step of the ladder.
    """
    try:
        return attempt(0.0), 0.0
    except NotPositiveError:
        pass
    jitter = float(np.finfo(np.float64).eps * max(scale, np.finfo(np.float64).tiny))
    while True:
        try:
            found = attempt(jitter)
            break
        except NotPositiveError:
            jitter *= _STEP
            if not jitter <= 1.0001 * scale < np.inf:  # a scale that overflowed is never reached
                raise ConvergenceError(
                    f"the covariance matrix of {n:,} rows is not positive semi-definite, not even with its own mean "
                    f"({scale:.2e}) on the diagonal; is_mercer(kernel, X) shows where"
                ) from None
    if refine:
        low, high = jitter / _STEP, jitter
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            try:
                found, high = attempt(middle), middle
            except NotPositiveError:
                low = middle
        jitter = high
    return found, float(jitter)


def factor_repaired(K: np.ndarray, diagonal: np.ndarray, threads: int) -> tuple[Factor, float]:
    """(factor of K + diag(diagonal) + jitter I, jitter)."""
    mean = float(np.diagonal(K).mean() + diagonal.mean())
    index = np.arange(len(K))

    def attempt(jitter: float) -> Factor:
        S = K.copy()
        S[index, index] += diagonal + jitter
        return factor(S, threads)

    return smallest_jitter(attempt, mean, len(K))
