"""What stands next to X: response, offset, number of trials; in one array, so that it travels with the rows anywhere.

The columns of a batch's y are (response, offset, trials, log b), as many as there have to be; a lone response is a
vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.data import Batch, Data, Scan
from epicycle.data._dask_data import is_dask
from epicycle.data._numbers import require_finite
from epicycle.data._target import as_numeric_target
from epicycle.stats.families import Binomial, Family, StandardFamily

__all__ = ["Given", "Rows", "Target", "gather"]

Array = np.ndarray


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
    """Which columns a y has: as users bring them, and after :meth:`encode`."""

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
    columns = y[:, None] if y.ndim == 1 else y
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
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataTypeError(f"{name}: expected an array of numbers, got {type(values).__name__}") from None
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
