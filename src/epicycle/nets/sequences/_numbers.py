"""Sequences of numbers in: lists of tables of any length, or one array, checked and made float32."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError


def as_number_sequences(X: Any, estimator_name: str, n_features: int | None = None) -> list[np.ndarray]:
    """X as a list of float32 arrays of shape (n_steps, n_features).

    Parameters
    ----------
    X : array of shape (n, n_steps) or (n, n_steps, n_features), or list of arrays (n_steps,) or (n_steps, n_features)
    estimator_name : str
        Named in errors.
    n_features : int, optional
        Of the sequences that the network was fitted to.
    """
    if sp.issparse(X):
        raise DataTypeError(f"X: {estimator_name} expects dense sequences; got a sparse matrix")
    if isinstance(X, np.ndarray) and X.dtype != object:
        require_numbers(X, "X", estimator_name)
        if X.ndim not in (2, 3):
            raise DataError(
                f"X: {estimator_name} expects sequences of shape (n, n_steps) or (n, n_steps, n_features), or a list "
                f"of arrays of shape (n_steps, n_features); got an array of shape {X.shape}"
            )
        sequences = list(X if X.ndim == 3 else X[:, :, None])
    else:
        if not isinstance(X, Iterable) or isinstance(X, dict | set | str | bytes):
            raise DataTypeError(f"X: {estimator_name} expects a list of sequences; got {type(X).__name__}")
        sequences = [_one_sequence(x, i, estimator_name) for i, x in enumerate(X)]
    if not sequences:
        raise DataError(f"X: found 0 sample(s); {estimator_name} expects at least one sequence")
    empty = next((i for i, x in enumerate(sequences) if len(x) == 0), None)
    if empty is not None:
        raise DataError(f"X: sequence {empty} is empty; expected at least one step in each sequence")
    expected = sequences[0].shape[1] if n_features is None else n_features
    for i, x in enumerate(sequences):
        if x.shape[1] != expected or expected == 0:
            fitted = "as in sequence 0" if n_features is None else f"as {estimator_name} was fitted to"
            raise DataError(f"X: sequence {i} has {x.shape[1]} features; expected {expected or 'at least 1'}, {fitted}")
    return [_finite(x, i) for i, x in enumerate(sequences)]


def require_numbers(values: np.ndarray, name: str, estimator_name: str) -> None:
    """Raise unless an array holds real numbers."""
    if values.dtype.kind not in "buif":
        raise DataTypeError(f"{name}: {estimator_name} expects numbers; got an array of dtype {values.dtype}")


def _one_sequence(x: Any, i: int, estimator_name: str) -> np.ndarray:
    try:
        values = np.asarray(x)
    except ValueError as error:
        raise DataError(f"X: sequence {i} is no table of numbers: {error}") from None
    if values.dtype.kind not in "buif" and values.size:
        kind = type(x).__name__ if values.ndim == 0 else f"entries of dtype {values.dtype}"
        raise DataTypeError(
            f"X: sequence {i} has {kind}; {estimator_name} expects either numbers in every sequence, of shape "
            "(n_steps, n_features), or a text or a list of tokens in every sequence"
        )
    if values.ndim not in (1, 2):
        raise DataError(f"X: sequence {i} has the shape {values.shape}; expected (n_steps,) or (n_steps, n_features)")
    return values[:, None] if values.ndim == 1 else values


def _finite(x: np.ndarray, i: int) -> np.ndarray:
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        step = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise DataError(f"Input X contains NaN or infinity: sequence {i}, step {step}; expected finite numbers")
    with np.errstate(over="ignore"):
        short = x.astype(np.float32, copy=False)
    if not np.isfinite(short).all():
        raise DataError(f"Input X contains infinity or a value too large for float32: sequence {i}; scale the features")
    return short


def step_moments(sequences: Sequence[np.ndarray], weight: np.ndarray | None) -> tuple[list[float], list[float]]:
    """Means and standard deviations of the features over all steps; 1 for a feature that is constant."""
    v = np.ones(len(sequences)) if weight is None else weight
    counted = [(x, w) for x, w in zip(sequences, v.tolist(), strict=True) if w > 0]
    n = sum(w * len(x) for x, w in counted)
    mean = np.sum([w * x.sum(axis=0, dtype=np.float64) for x, w in counted], axis=0) / n
    squares = np.sum([w * np.square(x - mean).sum(axis=0) for x, w in counted], axis=0)
    deviation = np.sqrt(squares / n)
    # A feature whose spread is the rounding of its mean is constant.
    constant = deviation <= 1e-6 * np.abs(mean)
    return mean.tolist(), np.where(constant, 1.0, deviation).tolist()
