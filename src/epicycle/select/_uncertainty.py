"""How sure a mean over folds is.

Scores of k folds are not independent, for their training rows overlap. For one score the plain standard error is
given; for the difference of two models, which decides, Nadeau and Bengio's variance s^2 (1/k + n_test / n_train) keeps
the test from being too sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from epicycle.select._inputs import Split

__all__ = ["corrected_error", "reach", "rows_ratio", "standard_error"]


def standard_error(scores: np.ndarray) -> Any:
    """Standard error of the mean over the last axis; NaN where there is one score only."""
    k = scores.shape[-1]
    return np.std(scores, axis=-1, ddof=1) / np.sqrt(k) if k > 1 else np.full(scores.shape[:-1], np.nan)[()]


def corrected_error(differences: np.ndarray, ratio: float) -> Any:
    """The same for differences over folds that share training rows; `ratio` is that of test to training rows."""
    k = differences.shape[-1]
    if k < 2:
        return np.full(differences.shape[:-1], np.nan)[()]
    return np.std(differences, axis=-1, ddof=1) * np.sqrt(1 / k + ratio)


def rows_ratio(splits: Sequence[Split]) -> float:
    """Test rows for every training row, on average over the splits."""
    return float(np.mean([len(test) / len(train) for train, test in splits]))


def reach(k: int) -> float:
    """How many standard errors a difference over k folds has to have: the 97.5% point of Student's t."""
    return float(stdtrit(max(k - 1, 1), 0.975))
