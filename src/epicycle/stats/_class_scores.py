"""Scores of classes: log-probabilities of linear predictors, and the class that scores choose."""

from __future__ import annotations

import numpy as np

__all__ = ["log_probabilities"]


def log_probabilities(Z: np.ndarray) -> np.ndarray:
    """log P of scores, for one column those of both classes."""
    if Z.shape[1] == 1:
        z = Z[:, 0]
        return np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
    Z = Z - Z.max(axis=1, keepdims=True)
    return Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))
