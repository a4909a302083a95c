"""Data in files: every pass reads them anew, ahead of the computation, in blocks that fit the cache."""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, EngineError
from epicycle.data._array_data import dense_block_rows
from epicycle.data._data import Batch, Data, TargetEncoder
from epicycle.data._numbers import exact_in_float64, require_finite
from epicycle.data._scan import Scan, require_numbers
from epicycle.data._target import TargetKind, check_labels

_CHUNK_BLOCKS = 4  # blocks that are read at a time: about 8 MiB
_HEAD_ROWS = 1024  # of `head`, as for arrays

#: Consecutive rows as they were read: the index of the first, and pieces of chunks.
Raw = tuple[int, list[Any]]


class ScanData(Data):
    """The rows of a :class:`Scan`.

    Parameters
    ----------
    scan : Scan
    target : {"none", "numeric", "labels"}
    estimator_name : str
    missing : bool
        Whether features may be missing (NaN then), or infinite; otherwise such values are refused.
    """

    sparse = False

    def __init__(
        self, scan: Scan, target: TargetKind = "none", *, estimator_name: str = "estimator", missing: bool = False
    ) -> None:
        self.scan, self._target, self._estimator_name, self._missing = scan, target, estimator_name, missing
        targets = scan.targets if target != "none" else ()
        self._names = (*scan.columns, *targets, *([scan.weight] if scan.weight else []))
        self.n_features = len(scan.columns)
        self.feature_names = scan.feature_names
        self.dtype = np.dtype(np.float32 if self._all_single() else np.float64)
        self.has_weight = scan.weight is not None
        self.n_targets = len(targets)
        self.target_is_vector = bool(targets) and scan.target_is_vector
        self._read_targets, self._reads_vector = self.n_targets, self.target_is_vector
        self._coded = [(j, scan.coders[name]) for j, name in enumerate(scan.columns) if name in scan.coders]
        self._text = frozenset(scan.coders) & scan.text_columns
        numbers = (name for name in self._names if target == "numeric" or name not in targets)
        self._numbers = frozenset(numbers) - self._text
        self._encoders: tuple[TargetEncoder, ...] = ()
        self._head: Batch | None = None
        self.batch_rows = scan.batch_rows or dense_block_rows(self.n_features, self.dtype)
        for name in scan.columns:
            if name not in scan.coders:
                for table in scan.tables:
                    require_numbers(table, name, "columns")
        self._check_target(targets)

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]
        """Number of rows; for CSV known after the first whole pass."""
        return self.scan.n_rows

    def batches(self) -> Generator[Batch, None, None]:
        with closing(self.raw()) as raw:
            for rows in raw:
                yield self.assemble(rows)

    def encode_target(self, function: TargetEncoder, n_columns: int | None = None) -> ScanData:
        if not self.n_targets:
            raise DataError("y: there is no target to encode")
        encoded = copy.copy(self)
        if n_columns is not None:
            encoded.n_targets, encoded.target_is_vector = n_columns, False
        encoded._encoders = (*self._encoders, function)
        encoded._head = None
        return encoded

    def head(self) -> Batch:
        if self._head is None:
            with closing(self._cut(self._chunks(_HEAD_ROWS), _HEAD_ROWS)) as pieces:
                first = next(pieces, None)
            if first is None:
                raise self._empty()
            self._head = self.assemble(first)
        return self._head

    def raw(self) -> Generator[Raw, None, None]:
        """All rows in order as they come from the files, read ahead; :meth:`assemble` makes batches of them."""
        rows, weighs = 0, not self.has_weight
        with closing(prefetch(self._chunks(_CHUNK_BLOCKS * self.batch_rows))) as chunks:
            for start, pieces in self._cut(chunks, self.batch_rows):
                weighs = weighs or any(self._last_column(piece).any() for piece in pieces)
                rows = start + sum(len(piece) for piece in pieces)
                yield start, pieces
        if rows == 0:
            raise self._empty()
        if not weighs:
            raise DataError("sample_weight: every weight is zero; at least one must be positive")
        self.scan.n_rows = rows

    def assemble(self, raw: Raw) -> Batch:
        """Rows as read to a checked batch: one copy, in Fortran order."""
        start, pieces = raw
        p, k = self.n_features, self._read_targets
        if isinstance(pieces[0], np.ndarray):
            table = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            exact_in_float64(table, "X")
            X = table[:, :p].astype(self.dtype, copy=bool(self._coded))
            for j, coder in self._coded:
                X[:, j] = coder(table[:, j])
            columns = [table[:, j] for j in range(p, table.shape[1])]
        else:
            X = np.empty((sum(len(piece) for piece in pieces), p), self.dtype, order="F")
            filled = 0
            for piece in pieces:
                stop = filled + len(piece)
                for j, name in enumerate(self.scan.columns):
                    if name in self.scan.coders:
                        X[filled:stop, j] = self.scan.coders[name](piece.column(j))
                    else:
                        X[filled:stop, j] = self._numeric(piece.column(j), name, missing=self._missing)
                filled = stop
            columns = [
                np.concatenate([self._column(piece.column(j), self._names[j]) for piece in pieces])
                for j in range(p, len(self._names))
            ]
        if not self._missing:
            require_finite(X, "X", columns=self.scan.columns, estimator_name=self._estimator_name, first_row=start)
        return Batch(X, self._targets(columns[:k], start), self._weight(columns[k:], start), start)

    def _chunks(self, rows: int) -> Generator[Any, None, None]:
        return read_columns(self.scan, self._names, rows, self._numbers, self._text)

    @staticmethod
    def _cut(chunks: Iterable[Any], rows: int) -> Generator[Raw, None, None]:
        """Chunks of any size to pieces of `rows` rows, so that blocks do not depend on how files are divided."""
        start, have, pieces = 0, 0, []
        for chunk in chunks:
            offset, n = 0, len(chunk)
            while offset < n:
                take = min(rows - have, n - offset)
                pieces.append(chunk[offset : offset + take])
                offset, have = offset + take, have + take
                if have == rows:
                    yield start, pieces
                    start, have, pieces = start + rows, 0, []
        if have:
            yield start, pieces

    def _last_column(self, piece: Any) -> np.ndarray:
        last = len(self._names) - 1
        return piece[:, last] if isinstance(piece, np.ndarray) else self._numeric(piece.column(last), self._names[last])

    def _column(self, column: Any, name: str) -> np.ndarray:
        return self._numeric(column, name) if name in self._numbers else _labels(column, name)

    def _numeric(self, column: Any, name: str, *, missing: bool = False) -> np.ndarray:
        """An Arrow column of numbers as an array, without a copy where there is nothing to convert."""
        import pyarrow as pa

        if column.null_count:
            if missing:
                exact_in_float64(column.drop_null().to_numpy(zero_copy_only=False), f"column {name!r}")
                return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
            raise DataError(f"Input contains NaN: column {name!r} has {column.null_count} missing values in one block")
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        values: np.ndarray = column.to_numpy(zero_copy_only=False)
        exact_in_float64(values, f"column {name!r}")
        return values

    def _targets(self, columns: list[np.ndarray], start: int) -> np.ndarray | None:
        if not columns:
            return None
        y = columns[0] if self._reads_vector else np.column_stack(columns)
        if self._target == "numeric":
            exact_in_float64(y, "y")
            y = y.astype(np.float64, copy=False)
            require_finite(y, "y", estimator_name=self._estimator_name, first_row=start)
        else:
            check_labels(y, self._estimator_name)
        for encode in self._encoders:
            y = encode(y)
        return y

    def _weight(self, columns: list[np.ndarray], start: int) -> np.ndarray | None:
        if not columns:
            return None
        weight = columns[0].astype(np.float64, copy=False)
        require_finite(weight, "sample_weight", first_row=start)
        if weight.size and weight.min() < 0:
            row = int((weight < 0).argmax())
            raise DataError(f"sample_weight: {self.scan.weight!r} is negative ({weight[row]:g}) in row {start + row}")
        return weight

    def _all_single(self) -> bool:
        import pyarrow as pa

        names = [name for name in self.scan.columns if name not in self.scan.coders]
        kinds = [table.columns[name] for table in self.scan.tables for name in names]
        return all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in kinds)

    def _check_target(self, targets: tuple[str, ...]) -> None:
        from epicycle.data._formats import is_number

        for table in self.scan.tables:
            for name in targets:
                if name not in table.columns:
                    raise DataError(f"target={name!r}: {table.path} has no such column")
                if self._target == "numeric" and not is_number(table.columns[name]):
                    raise DataTypeError(
                        f"y: the target {name!r} of {table.path} is of type {table.columns[name]}; expected numbers"
                    )
        if self.scan.n_rows == 0:
            raise self._empty()

    def _empty(self) -> DataError:
        return DataError(
            f"X: Found array with 0 sample(s) (shape=(0, {self.n_features})) while a minimum of 1 is required: "
            f"{self.scan!r} has no rows"
        )


def read_columns(
    scan: Scan,
    names: Sequence[str],
    rows: int,
    as_float64: frozenset[str] = frozenset(),
    as_text: frozenset[str] = frozenset(),
) -> Generator[Any, None, None]:
    """Some columns of all files in chunks; whatever goes wrong while reading names the file."""
    import pyarrow as pa

    for table in scan.tables:
        # Another pass over changed files would mix two data sets in one fit.
        if (change := table.changed()) is not None:
            raise EngineError(f"{table.path} {change} since the scan was made")
        try:
            yield from table.chunks(names, rows, as_float64, as_text)
        except pa.ArrowInvalid as error:
            raise DataError(f"{table.path}: {error}") from None
        except (OSError, KeyError, pa.ArrowException) as error:
            change = table.changed() or "cannot be read"
            raise EngineError(f"{table.path} {change}: {error}") from error


def _labels(column: Any, name: str) -> np.ndarray:
    """An Arrow column as class labels; strings as a NumPy array of strings, made from the distinct ones only."""
    import pyarrow as pa

    from epicycle.data._formats import is_text

    if column.null_count:
        raise DataError(f"Input y contains NaN: target {name!r} has {column.null_count} missing values in one block")
    if not pa.types.is_dictionary(column.type):
        if not is_text(column.type):
            values: np.ndarray = column.to_numpy(zero_copy_only=False)
            return values
        column = column.dictionary_encode()  # Python strings are made once for each class, not for each row
    distinct = np.array(column.dictionary.to_pylist())
    values = distinct[column.indices.to_numpy(zero_copy_only=False)]
    return values


Item = TypeVar("Item")


def prefetch(items: Iterable[Item], depth: int = 2) -> Generator[Item, None, None]:
    """The same items, read ahead by a thread of its own; an exception of the source is raised here.

    The thread ends when the source does, or when this generator is closed: by the garbage collector at the latest, by
    an exception or an interrupt in the consumer's ``with closing(...)`` at once.
    """
    line: queue.Queue[tuple[Item | None, BaseException | None, bool]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Item | None, error: BaseException | None = None, last: bool = False) -> bool:
        while not stopped.is_set():
            try:
                # With a timeout: a consumer that went away would leave the thread waiting for ever.
                line.put((item, error, last), timeout=0.05)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(item):
                    break
            else:
                put(None, last=True)
        except BaseException as error:
            put(None, error)
        finally:
            getattr(items, "close", lambda: None)()  # files are closed by the thread that reads them

    reader = threading.Thread(target=read, name="epicycle-reader", daemon=True)
    try:
        reader.start()
        while True:
            item, error, last = line.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]  # None only with an error or at the end
            del item  # not kept alive while waiting for the next
    finally:
        stopped.set()
        if reader.is_alive():
            reader.join()
