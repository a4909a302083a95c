"""Tables in files, larger than memory: :func:`scan` names the files and columns, a fit reads them block by block."""

from __future__ import annotations

import copy
import difflib
import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicycle.core._exceptions import DataError, DataFileError, DataTypeError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from epicycle.data._formats import TableFile

Column = str | int
PathLike = str | os.PathLike[str]


def scan(
    paths: PathLike | Iterable[PathLike],
    *,
    target: Column | Sequence[Column] | None = None,
    weight: Column | None = None,
    columns: Sequence[Column] | None = None,
    batch_rows: int | None = None,
) -> Scan:
    """Files that ``fit`` and ``predict`` take in place of X (and y), without reading them into memory.

    Parameters
    ----------
    paths : str, path, or iterable of them
        A file, a folder, or a pattern such as ``"part-*.parquet"`` (files in the order of their names); CSV, Parquet,
        Arrow IPC / Feather or .npy, all of one kind. CSV needs a header line.
    target : str, or int for .npy, or a list of them, optional
        The column to be predicted.
    weight : str, or int for .npy, optional
        The column of sample weights.
    columns : list of str, or of int for .npy, optional
        The features, in this order; all but target and weight by default. Columns of .npy files are numbered and also
        go by the names ``"x0"``, ``"x1"``, ... Columns of text are for estimators that take categories.
    batch_rows : int, optional
        Rows that are computed with at a time; about 2 MiB by default.

    Returns
    -------
    Scan

    Examples
    --------
    >>> import numpy as np, epicycle as ep, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.save(folder / "a.npy", np.arange(12.0).reshape(4, 3))
    >>> scan = ep.scan(folder / "a.npy", target=2)
    >>> scan.n_rows, scan.columns
    (4, ('x0', 'x1'))
    """
    from epicycle.data._formats import open_table

    if batch_rows is not None and (isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1):
        raise ParameterError(f"batch_rows={batch_rows!r}: expected None or a positive number of rows")
    # Only headers are read here; a wrong column or type is an error before any work starts.
    tables = [open_table(path) for path in _files(paths)]
    kinds = sorted({table.kind for table in tables})
    if len(kinds) > 1:
        raise DataFileError(f"paths: files of several kinds ({', '.join(kinds)}); expected one kind")
    vector = target is None or isinstance(target, str | int)
    targets = _names(tables[0], [] if target is None else [target] if vector else target, "target")
    weights = _names(tables[0], [] if weight is None else [weight], "weight")
    taken = {*targets, *weights}
    if columns is None:
        features = tuple(name for name in tables[0].columns if name not in taken)
    else:
        features = _names(tables[0], columns, "columns")
    if not features:
        raise DataError("columns: Found array with 0 feature(s): no column is left besides target and weight")
    used = (*features, *targets, *weights)
    if len(set(used)) < len(used):
        twice = sorted({name for name in used if used.count(name) > 1})
        raise ParameterError(f"columns, target, weight: {', '.join(map(repr, twice))} named more than once")
    _check_types(tables, features, weights, every_column=columns is None)
    return Scan(tables, features, targets, weights[0] if weights else None, vector, batch_rows)


class Scan:
    """The outcome of :func:`scan`: which files, which columns. Goes into ``fit`` and ``predict`` in place of X.

    Attributes
    ----------
    paths : tuple of Path
    columns : tuple of str
        The features.
    targets : tuple of str
    weight : str or None
    n_rows : int or None
        Number of rows; None for CSV until a first pass has counted them.
    feature_names : tuple of str, or None
        The features where the files name them (not .npy).
    coders : dict of str to callable
        What makes numbers of columns of categories, as they are read.
    """

    def __init__(
        self,
        tables: Sequence[TableFile],
        columns: tuple[str, ...],
        targets: tuple[str, ...],
        weight: str | None,
        target_is_vector: bool,
        batch_rows: int | None,
    ) -> None:
        self.tables = tuple(tables)
        self.paths = tuple(table.path for table in tables)
        self.columns, self.targets, self.weight = columns, targets, weight
        self.target_is_vector = target_is_vector
        self.batch_rows = batch_rows
        self.coders: Mapping[str, Callable[[Any], np.ndarray]] = {}
        counts = [table.n_rows for table in tables]
        self.n_rows: int | None = None if None in counts else sum(n for n in counts if n is not None)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return None if self.tables[0].kind == ".npy" else self.columns

    @property
    def text_columns(self) -> frozenset[str]:
        """Features that hold text, or a dictionary of values, in some file."""
        from epicycle.data._formats import is_text

        return frozenset(name for name in self.columns if any(is_text(table.columns[name]) for table in self.tables))

    @property
    def empty_words(self) -> frozenset[str]:
        """Texts that stand for a missing value."""
        return self.tables[0].empty_words

    def coded(self, coders: Mapping[str, Callable[[Any], np.ndarray]]) -> Scan:
        """The same files with columns of categories made numbers; a coder takes an Arrow column, or that of an .npy."""
        other = copy.copy(self)
        other.coders = coders
        return other

    def head(self, n: int = 5) -> pa.Table:
        """The first n rows of the used columns as an Arrow table."""
        import numpy as np
        import pyarrow as pa

        names = (*self.columns, *self.targets, *([self.weight] if self.weight else []))
        pieces: list[pa.Table] = []
        for table in self.tables:
            missing = n - sum(piece.num_rows for piece in pieces)
            if missing <= 0:
                break
            for chunk in table.chunks(names, missing, frozenset()):
                if isinstance(chunk, np.ndarray):
                    chunk = pa.record_batch({name: chunk[:, j].copy() for j, name in enumerate(names)})
                pieces.append(pa.Table.from_batches([chunk]).slice(0, missing))
                break
        return pa.concat_tables(pieces, promote_options="permissive").slice(0, n)

    def __repr__(self) -> str:
        rows = "rows not counted" if self.n_rows is None else f"{self.n_rows:,} rows"
        files = self.paths[0].name if len(self.paths) == 1 else f"{len(self.paths)} files"
        target = f", target {', '.join(self.targets)}" if self.targets else ""
        weight = f", weight {self.weight}" if self.weight else ""
        return f"Scan({files} ({self.tables[0].kind}), {rows} x {len(self.columns)} features{target}{weight})"


def _files(paths: Any) -> list[Path]:
    """The files that the argument names, each of which exists."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    elif not isinstance(paths, Iterable):
        raise ParameterTypeError(f"paths={paths!r}: expected a path, a pattern or a list of them")
    files: list[Path] = []
    for item in paths:
        if not isinstance(item, str | os.PathLike):
            raise ParameterTypeError(f"paths: expected paths, got {type(item).__name__}")
        files += _matches(Path(item).expanduser())
    if not files:
        raise DataFileError("paths: an empty list of files")
    return files


def _matches(path: Path) -> list[Path]:
    if path.is_dir():
        from epicycle.data._formats import table_class

        # Names with "_" and "." are markers and metadata of other writers (_SUCCESS, _metadata).
        found = sorted(f for f in path.iterdir() if not f.name.startswith((".", "_")) and table_class(f) is not None)
        if not found:
            raise DataFileError(f"paths: the folder {path} holds no CSV, Parquet, Arrow or .npy file")
        return found
    if path.exists():
        return [path]
    found = sorted(Path(f) for f in glob.glob(str(path))) if glob.has_magic(str(path)) else []
    if not found:
        raise DataFileError(f"paths: {path} does not exist, or matches no file")
    return found


def _names(table: TableFile, columns: Any, argument: str) -> tuple[str, ...]:
    """Columns as names that the table has."""
    if isinstance(columns, str | int):
        raise ParameterTypeError(f"{argument}={columns!r}: expected a list of columns")
    names = []
    for column in columns:
        if isinstance(column, int) and not isinstance(column, bool) and table.kind == ".npy":
            if not -len(table.columns) <= column < len(table.columns):
                raise DataError(f"{argument}={column}: {table.path} has {len(table.columns)} columns")
            names.append(f"x{column % len(table.columns)}")
            continue
        if not isinstance(column, str):
            raise ParameterTypeError(f"{argument}={column!r}: expected the name of a column")
        if column not in table.columns:
            raise DataError(f"{argument}={column!r}: {table.path} has no such column{_suggestion(column, table)}")
        names.append(column)
    return tuple(names)


def _suggestion(column: str, table: TableFile) -> str:
    near = difflib.get_close_matches(column, table.columns, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    some = ", ".join(map(repr, list(table.columns)[:10]))
    return f"; it has {len(table.columns)}: {some}{', ...' if len(table.columns) > 10 else ''}"


def _check_types(
    tables: Sequence[TableFile], features: tuple[str, ...], weights: tuple[str, ...], *, every_column: bool
) -> None:
    """Weights are numbers, features numbers or text in every file, and every file has the columns of the first."""
    from epicycle.data._formats import is_text

    first = tables[0]
    for table in tables:
        wanted = first.columns if every_column else (*features, *weights)
        for name in wanted:
            if name not in table.columns:
                raise DataError(f"paths: {table.path} has no column {name!r}, which {first.path} has")
        if every_column and len(table.columns) != len(first.columns):
            extra = next(name for name in table.columns if name not in first.columns)
            raise DataError(f"paths: {table.path} has a column {extra!r}, which {first.path} has not; name columns=")
        for argument, names in (("columns", features), ("weight", weights)):
            for name in names:
                if not (argument == "columns" and is_text(table.columns[name])):
                    require_numbers(table, name, argument)


def require_numbers(table: TableFile, name: str, argument: str) -> None:
    """Raise unless a column holds numbers, or nothing at all."""
    import pyarrow as pa

    from epicycle.data._formats import is_number

    if not (is_number(table.columns[name]) or pa.types.is_null(table.columns[name])):
        raise DataTypeError(
            f"{argument}: {name!r} of {table.path} is of type {table.columns[name]}; expected numbers "
            f"(encode it first, or leave it out with columns=[...])"
        )
