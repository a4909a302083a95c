"""Table files as streams of chunks of rows: CSV, Parquet, Arrow IPC (Feather) and .npy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from epicycle.core._exceptions import DataFileError

_STREAM_BYTES = 1 << 18  # read at a time from a Parquet column: a row group is never held whole

#: Consecutive rows of some columns: an Arrow record batch, or rows of an .npy file as an ndarray.
Chunk: TypeAlias = Any


def is_number(dtype: Any) -> bool:
    """Whether an Arrow type holds real numbers (or booleans)."""
    t = pa.types
    return bool(t.is_integer(dtype) or t.is_floating(dtype) or t.is_boolean(dtype) or t.is_decimal(dtype))


def is_text(dtype: Any) -> bool:
    """Whether an Arrow type holds levels of categories: text, or a dictionary of any values."""
    t = pa.types
    return bool(t.is_string(dtype) or t.is_large_string(dtype) or t.is_string_view(dtype) or t.is_dictionary(dtype))


class TableFile(ABC):
    """One file: its columns are read when it is opened, its rows on every call of :meth:`chunks`.

    Attributes
    ----------
    columns : dict of str to pyarrow.DataType
    n_rows : int or None
        None where only reading tells.
    empty_words : frozenset of str
        Texts that stand for a missing value.
    """

    columns: dict[str, Any]
    n_rows: int | None = None
    empty_words: frozenset[str] = frozenset()

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._signature = self.signature()
            self._open()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise DataFileError(f"{path}: cannot be read as {self.kind}: {error}") from None

    kind: str

    @abstractmethod
    def _open(self) -> None:
        """Set `columns` and, where the file says it, `n_rows`."""

    @abstractmethod
    def chunks(
        self, columns: Sequence[str], rows: int, as_float64: frozenset[str], as_text: frozenset[str] = frozenset()
    ) -> Iterator[Chunk]:
        """The rows in order, about `rows` at a time.

        Where the file says nothing of types, columns in `as_float64` are numbers even where they look whole, and those
        in `as_text` are text even where they look like numbers.
        """

    def signature(self) -> tuple[int, int]:
        """Size and time of change: what tells that the file is still the same."""
        status = self.path.stat()
        return status.st_size, status.st_mtime_ns

    def changed(self) -> str | None:
        """Why the file is not what it was when it was opened, or None."""
        try:
            return None if self.signature() == self._signature else "was changed"
        except OSError:
            return "has vanished"


class ParquetTable(TableFile):
    kind = "Parquet"

    def _open(self) -> None:
        with pa.parquet.ParquetFile(self.path) as file:
            self.columns = {field.name: field.type for field in file.schema_arrow}
            self.n_rows = int(file.metadata.num_rows)

    def chunks(
        self, columns: Sequence[str], rows: int, as_float64: frozenset[str], as_text: frozenset[str] = frozenset()
    ) -> Iterator[Chunk]:
        with pa.parquet.ParquetFile(self.path, buffer_size=_STREAM_BYTES, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=rows, columns=list(columns), use_threads=True)
        pa.default_memory_pool().release_unused()  # Arrow would keep the buffers of a pass for the next


class CsvTable(TableFile):
    kind = "CSV"
    empty_words = frozenset(pa.csv.ConvertOptions().null_values)

    def _options(self) -> pa.csv.ParseOptions:
        tab = ".tsv" in self.path.suffixes
        return pa.csv.ParseOptions(delimiter="\t" if tab else ",")

    def _open(self) -> None:
        with pa.csv.open_csv(self.path, parse_options=self._options()) as reader:
            self.columns = {field.name: field.type for field in reader.schema}

    def chunks(
        self, columns: Sequence[str], rows: int, as_float64: frozenset[str], as_text: frozenset[str] = frozenset()
    ) -> Iterator[Chunk]:
        # Types guessed from the first block would fail on a later one with a decimal point.
        types = {name: pa.float64() if name in as_float64 else self.columns[name] for name in columns}
        types.update({name: pa.string() for name in columns if name in as_text})
        with pa.csv.open_csv(
            self.path,
            parse_options=self._options(),
            read_options=pa.csv.ReadOptions(block_size=8 << 20),  # large enough for any line, small for memory
            convert_options=pa.csv.ConvertOptions(include_columns=list(columns), column_types=types),
        ) as reader:
            yield from reader


class IpcTable(TableFile):
    kind = "Arrow IPC"

    def _open(self) -> None:
        with pa.memory_map(str(self.path)) as source:
            try:
                file = pa.ipc.open_file(source)
                self._random_access = True
                self.n_rows = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
            except pa.ArrowInvalid:  # the streaming form has no directory of batches
                source.seek(0)
                file = pa.ipc.open_stream(source)
                self._random_access = False
            self._names = list(file.schema.names)
            self.columns = {field.name: field.type for field in file.schema}

    def chunks(
        self, columns: Sequence[str], rows: int, as_float64: frozenset[str], as_text: frozenset[str] = frozenset()
    ) -> Iterator[Chunk]:
        wanted = pa.ipc.IpcReadOptions(included_fields=[self._names.index(name) for name in columns])
        with pa.memory_map(str(self.path)) as source:
            if self._random_access:
                file = pa.ipc.open_file(source, options=wanted)
                for i in range(file.num_record_batches):
                    yield file.get_batch(i).select(list(columns))
            else:
                for batch in pa.ipc.open_stream(source, options=wanted):
                    yield batch.select(list(columns))


class NpyFile(TableFile):
    kind = ".npy"

    def _open(self) -> None:
        array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.memmap) or array.ndim != 2:
            raise ValueError(f"holds an array of shape {array.shape}; expected two dimensions")
        self.n_rows, n_columns = (int(n) for n in array.shape)
        self._dtype, self._offset = array.dtype, int(array.offset)
        self._by_column = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        kind = pa.from_numpy_dtype(array.dtype) if array.dtype.kind in "biuf" else pa.binary()
        self.columns = {f"x{j}": kind for j in range(n_columns)}

    def chunks(
        self, columns: Sequence[str], rows: int, as_float64: frozenset[str], as_text: frozenset[str] = frozenset()
    ) -> Iterator[Chunk]:
        # Plain reads, not a memory map: pages of a map count as memory of the process until the system wants them back.
        assert self.n_rows is not None
        wanted = [int(name[1:]) for name in columns]
        n, p, size = self.n_rows, len(self.columns), self._dtype.itemsize
        with self.path.open("rb") as file:
            for start in range(0, n, rows):
                stop = min(start + rows, n)
                if self._by_column:
                    out = np.empty((stop - start, len(wanted)), self._dtype, order="F")
                    for k, j in enumerate(wanted):
                        file.seek(self._offset + (j * n + start) * size)
                        out[:, k] = self._read(file, stop - start)
                    yield out
                else:
                    file.seek(self._offset + start * p * size)
                    block = self._read(file, (stop - start) * p).reshape(-1, p)
                    yield _columns_of(block, wanted)

    def _read(self, file: Any, count: int) -> np.ndarray:
        values = np.fromfile(file, self._dtype, count)
        if len(values) != count:
            raise OSError("the file ends too early")
        return values


def _columns_of(block: np.ndarray, wanted: list[int]) -> np.ndarray:
    """Some columns: a view where they are consecutive."""
    if wanted == list(range(wanted[0], wanted[0] + len(wanted))):
        return block[:, wanted[0] : wanted[0] + len(wanted)]
    return block[:, wanted]


SUFFIXES: dict[str, type[TableFile]] = {
    ".parquet": ParquetTable,
    ".pq": ParquetTable,
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".arrow": IpcTable,
    ".arrows": IpcTable,
    ".feather": IpcTable,
    ".ipc": IpcTable,
    ".npy": NpyFile,
}


def table_class(path: Path) -> type[TableFile] | None:
    """The class for a file, by the end of its name; compressed CSV counts as CSV."""
    suffixes = [s.lower() for s in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in (".gz", ".bz2", ".zst", ".lz4") and suffixes[-2] in (".csv", ".tsv"):
        return CsvTable
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def open_table(path: Path) -> TableFile:
    """Open one file by the end of its name."""
    cls = table_class(path)
    if cls is None:
        raise DataFileError(f"{path}: unknown kind of file; expected a name ending in {', '.join(SUFFIXES)}")
    return cls(path)
