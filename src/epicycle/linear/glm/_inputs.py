"""Arguments of a generalized linear model: rows, responses, offsets and categories as one data set and one design."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.data import Batch, Data, Scan, as_data
from epicycle.data._categories import Levels, category_columns, declared_levels, is_dask_frame, learn_levels
from epicycle.data._dask_data import is_dask
from epicycle.data._numbers import require_finite
from epicycle.data._target import as_numeric_target
from epicycle.linear.glm._design import Design, level_encoder
from epicycle.stats._family import Family, StandardFamily
from epicycle.stats._moments import target_columns
from epicycle.stats.families import Binomial

Array = np.ndarray

# --------------------------------------------------------------------------------------------------------------------
# The columns next to X: response, offset, number of trials; in one array, so that it travels with the rows.
#
# The columns of a batch's y are (response, offset, trials, log b), as many as there have to be; a lone response is a
# vector.


@dataclass(frozen=True)
class Rows:
    """A batch's y taken apart."""

    y: Array
    weight: Array | None
    offset: Array | None
    trials: Array | None
    log_base: Array | None

    @property
    def weights(self) -> Array:
        """Weights, ones where there are none."""
        return np.ones(len(self.y)) if self.weight is None else self.weight


@dataclass(frozen=True)
class Target:
    """The columns of y: as users bring them, and after :meth:`encode`."""

    family: Family
    pairs: bool = False
    offset: bool = False
    exposure: bool = False

    @property
    def plain(self) -> bool:
        """Whether y is the response alone."""
        return not (self.pairs or self.offset or self.exposure) and isinstance(self.family, StandardFamily)

    def encode(self, data: Data) -> Data:
        """The data with its y in the columns of the module's head."""
        return data if self.plain else data.encode_target(partial(encode_rows, target=self))

    def rows(self, batch: Batch) -> Rows:
        """Response, weights, offset and trials of an encoded batch; the trials are part of the weights."""
        y = batch.y
        if y.ndim == 1:
            return Rows(np.ascontiguousarray(y), batch.weight, None, None, None)
        offset = np.ascontiguousarray(y[:, 1]) if self.offset or self.exposure else None
        trials = np.ascontiguousarray(y[:, 2]) if self.pairs else None
        weight = batch.weight
        if trials is not None:
            weight = trials if weight is None else weight * trials
        base = None if isinstance(self.family, StandardFamily) else np.ascontiguousarray(y[:, 3])
        return Rows(np.ascontiguousarray(y[:, 0]), weight, offset, trials, base)


def encode_rows(y: Array, target: Target) -> Array:
    columns = target_columns(y)
    out = np.zeros((len(y), 4), order="F")
    at = 2 if target.pairs else 1
    if target.pairs:
        if (columns[:, :2] < 0).any():
            raise DataError("y: (successes, failures) has a negative count")
        trials = columns[:, 0] + columns[:, 1]
        out[:, 2] = trials
        out[:, 0] = np.divide(columns[:, 0], trials, out=np.full(len(y), 0.5), where=trials > 0)
    else:
        out[:, 0] = columns[:, 0]
    if target.offset:
        out[:, 1] = columns[:, at]
        at += 1
    if target.exposure:
        if not (columns[:, at] > 0).all():
            row = int(np.argmin(columns[:, at] > 0))
            raise DataError(f"exposure: is {columns[row, at]:g} in a row; expected numbers > 0")
        out[:, 1] += np.log(columns[:, at])
    if not isinstance(target.family, StandardFamily):
        target.family.check_target(out[:, 0])
        out[:, 3] = target.family.log_base(out[:, 0])
        out[:, 0] = target.family.sufficient(out[:, 0])
        require_finite(out[:, [0, 3]], "T(y) and log b(y)")
    return out


@dataclass(frozen=True)
class Given:
    """X and y as they go to the base class, and what the columns of y are."""

    X: Any
    y: Any
    target: Target
    multi_output: bool


def gather(X: Any, y: Any, offset: Any, exposure: Any, target: Target, estimator_name: str) -> Given:
    """Response, offset and exposure in one container of the kind of X."""
    binomial = isinstance(target.family, Binomial)
    target = replace(target, offset=offset is not None, exposure=exposure is not None)
    if isinstance(X, Scan):
        return _from_scan(X, y, offset, exposure, target)
    extra = [(name, v) for name, v in (("offset", offset), ("exposure", exposure)) if v is not None]
    for name, value in extra:
        if isinstance(value, str):
            raise DataTypeError(f"{name}={value!r}: names a column of files; expected an array for X in memory")
    if is_dask(X):
        pairs = binomial and getattr(y, "ndim", 1) == 2 and _width(y) == 2
        target = replace(target, pairs=pairs)
        if extra and y is not None:
            y = _stack_collections(y, extra)
        return Given(X, y, target, multi_output=not target.plain)
    if y is None:
        return Given(X, y, target, multi_output=False)
    shape = np.shape(np.asarray(y)) if binomial else ()
    pairs = len(shape) == 2 and shape[1] == 2
    target = replace(target, pairs=pairs)
    if not extra:
        return Given(X, y, target, multi_output=pairs)
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    columns = [np.reshape(as_numeric_target(y, n, multi_output=pairs, estimator_name=estimator_name), (n, -1))]
    columns += [vector(value, n, name)[:, None] for name, value in extra]
    return Given(X, np.hstack(columns), target, multi_output=True)


def vector(values: Any, n_rows: int, name: str) -> Array:
    """An offset or exposure as float64, one finite number for each row."""
    array = as_floats(values, DataTypeError(f"{name}: expected an array of numbers, got {type(values).__name__}"))
    if array.shape != (n_rows,):
        raise DataError(f"{name}: has shape {array.shape}; expected ({n_rows},), one number for each row of X")
    require_finite(array, name)
    return array


def _from_scan(scan: Scan, y: Any, offset: Any, exposure: Any, target: Target) -> Given:
    names = []
    for argument, value in (("offset", offset), ("exposure", exposure)):
        if value is None:
            continue
        if not isinstance(value, str) or value not in scan.tables[0].columns:
            raise ParameterError(f"{argument}={value!r}: expected the name of a column of the scanned files")
        if value in scan.targets or value == scan.weight:
            raise ParameterError(f"{argument}={value!r}: is the target or the weight of the scan already")
        names.append(value)
    pairs = isinstance(target.family, Binomial) and len(scan.targets) == 2
    target = replace(target, pairs=pairs)
    if names:
        columns = tuple(c for c in scan.columns if c not in names)
        targets = (*scan.targets, *names)
        scan = Scan(scan.tables, columns, targets, scan.weight, False, scan.batch_rows)
    return Given(scan, y, target, multi_output=bool(names) or pairs)


def _width(y: Any) -> int:
    return int(y.shape[1]) if hasattr(y, "chunks") else len(y.columns)


def _stack_collections(y: Any, extra: list[tuple[str, Any]]) -> Any:
    """Dask collections side by side."""
    for name, value in extra:
        if not is_dask(value):
            raise DataTypeError(
                f"{name}: X is a Dask collection, {name} is {type(value).__name__}; expected one as well"
            )
    if hasattr(y, "chunks"):
        import dask.array as da

        whole = y if y.ndim == 2 else y[:, None]
        return da.concatenate([whole, *(value[:, None] for _, value in extra)], axis=1).rechunk({1: -1})
    frame = y if y.ndim == 2 else y.to_frame(name="response")
    return frame.assign(**{f"__{name}": value for name, value in extra})


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
    factors = as_floats(given, ParameterError("penalty_weights: expected an array of numbers"))
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
        return np.asarray(eta)
    at = batch.y if batch.y.ndim == 2 else batch.y[:, None]
    extra = at[:, 0] if target.offset else 0.0
    if target.exposure:
        extra = extra + np.log(at[:, -1])
    return np.asarray(eta + extra)


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
