"""What users pass to a generalized linear model, made one data set and one design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataTypeError, ParameterError
from epicycle.data import Data, Scan, as_data
from epicycle.data._categories import Levels, category_columns, declared_levels, is_dask_frame, learn_levels
from epicycle.data._dask_data import is_dask
from epicycle.linear.glm._design import Design, level_encoder
from epicycle.linear.glm._targets import Target, gather, vector

__all__ = ["Opened", "Predictor", "is_raw", "levels_of", "offset_of", "penalty_factors"]

Array = np.ndarray


@dataclass(frozen=True)
class Opened:
    """Rows with encoded targets, and how to read them."""

    data: Data
    target: Target
    design: Design


def is_raw(X: Any) -> bool:
    """Whether the values of X are looked up batch by batch: files and Dask arrays."""
    return isinstance(X, Scan) or (is_dask(X) and not hasattr(X, "columns"))


def levels_of(X: Any, asked: Any, estimator_name: str) -> Levels:
    """Levels of the columns of categories, wherever the rows are."""
    columns = category_columns(X, asked)
    if is_dask_frame(X):
        return {j: declared_levels(X, j) for j in columns}
    if columns and isinstance(X, Scan):
        as_data(X, estimator_name=estimator_name)  # refuses columns of text: codes are made batch by batch, of numbers
    return learn_levels(X, columns, estimator_name, allow_missing=False)


def coded(X: Any, levels: Levels, *, ignore_unknown: bool, estimator_name: str) -> Any:
    """X with codes for levels, unless that is done batch by batch."""
    if is_raw(X):
        if any(known.dtype.kind not in "biuf" for known in levels.values()):
            raise DataTypeError(f"X: {estimator_name} learnt levels that are no numbers; X is {type(X).__name__}")
        return X
    if levels and not isinstance(X, np.ndarray) and not hasattr(X, "columns"):
        X = np.asarray(X)
    return level_encoder(levels, ignore_unknown, estimator_name).encode(X)


def penalty_factors(given: Any, design: Design, n_columns: int) -> Array:
    """The factors of alpha, one for each coefficient in the order of work; given one for each column of X."""
    if given is None:
        return np.ones(design.size)
    try:
        factors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("penalty_weights: expected an array of numbers") from None
    if factors.shape != (n_columns,):
        raise ParameterError(
            f"penalty_weights has shape {factors.shape}; expected one number for each of {n_columns} columns"
        )
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError("penalty_weights: expected finite numbers >= 0")
    return design.per_coefficient(factors)


@dataclass(frozen=True)
class Predictor:
    """The linear predictor of new rows: w in the order of work, b, and where the offset comes from."""

    design: Design
    w: Array
    b: float

    def __call__(self, data: Data, target: Target | None, n_jobs: int | None) -> Any:
        """eta of all rows; with a target the offsets are columns of y."""
        return engine.map(_eta, data, self.design, self.w, self.b, target, n_jobs=n_jobs)


def _eta(batch: Any, design: Design, w: Array, b: float, target: Target | None) -> Array:
    eta = design.predictor(batch.X, w) + np.asarray(b, dtype=w.dtype)
    if target is None or not (target.offset or target.exposure):
        return eta
    at = batch.y if batch.y.ndim == 2 else batch.y[:, None]
    extra = at[:, 0] if target.offset else 0.0
    if target.exposure:
        extra = extra + np.log(at[:, -1])
    return eta + extra


def offset_of(X: Any, offset: Any, exposure: Any) -> Any:
    """offset + log(exposure) for predictions, in memory or as a Dask array; None where there is neither."""
    if offset is None and exposure is None:
        return None
    if is_dask(X):
        import dask.array as da

        parts = [
            value.to_dask_array() if hasattr(value, "divisions") else value
            for value in (offset, exposure)
            if value is not None
        ]
        logs = [da.log(parts[-1])] if exposure is not None else []
        return sum([*([parts[0]] if offset is not None else []), *logs])
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    total = np.zeros(n) if offset is None else vector(offset, n, "offset")
    if exposure is not None:
        sizes = vector(exposure, n, "exposure")
        if not (sizes > 0).all():
            raise ParameterError(f"exposure: is {sizes.min():g} in row {int(sizes.argmin())}; expected numbers > 0")
        total = total + np.log(sizes)
    return total


def open_rows(
    X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any, target: Target, estimator_name: str
) -> tuple[Data, Target]:
    """Checked rows of a fitted model: for scores, residuals and tests."""
    given = gather(X, y, offset, exposure, target, estimator_name)
    data = as_data(
        given.X,
        given.y,
        sample_weight,
        target="numeric",
        multi_output=given.multi_output,
        estimator_name=estimator_name,
    )
    return given.target.encode(data), given.target
