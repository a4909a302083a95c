"""The linear predictor b + W x of every row, wherever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle import engine
from epicycle.data import Batch, Data
from epicycle.stats._class_scores import choose_class


def predictor_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return np.asarray(np.asarray(batch.X @ coef.T) + intercept)


def linear_predictor(data: Data, coef: np.ndarray, intercept: np.ndarray, n_jobs: int | None) -> Any:
    """Shape (n, k) for coef of shape (k, p) and intercept of shape (k,); a lazy Dask array for Dask data."""
    return engine.map(predictor_batch, data, coef, intercept, n_jobs=n_jobs)


def class_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class that the linear predictor of every row chooses."""
    return choose_class(predictor_batch(batch, coef, intercept), classes)
