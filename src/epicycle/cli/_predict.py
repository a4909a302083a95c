"""``epicycle predict``: rows in, predictions out, block by block."""

from __future__ import annotations

import csv
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from epicycle.automl import TableModel
from epicycle.automl.multioutput import MultiOutputTableModel
from epicycle.automl.multioutput._multi_output_table_model import sets_of
from epicycle.automl.tables._streams import blocks_of
from epicycle.automl.tables._table_model import half_width
from epicycle.core._exceptions import DataFileError, ParameterError
from epicycle.io import load
from epicycle.io._atomic import check_target, write_atomically


def run_prediction(
    path: Path,
    data: str,
    *,
    proba: bool,
    out: str | None,
    as_json: bool,
    n_jobs: int | None = None,
    header: bool = True,
    interval: float | None = None,
) -> None:
    """Write a prediction, and probabilities where they are asked for, of every row."""
    model = load(path)
    if n_jobs is not None and isinstance(model, TableModel) and "n_jobs" in model.model_.get_params(deep=False):
        model.model_.set_params(n_jobs=n_jobs)
    several = list(model.models.values()) if isinstance(model, MultiOutputTableModel) else [model]
    if proba and not any(hasattr(one, "predict_proba") for one in several):
        raise ParameterError(f"--proba: {path} has no probabilities, as a regression and a clustering have none")
    if interval is not None:
        known = [one for one in several if len(getattr(one, "residuals_", ())) > 0]
        if not known or not all(isinstance(one, TableModel) for one in known):
            raise ParameterError(
                f"--interval: {path} has no intervals; expected a regression of the mean that train made"
            )
        half_width(known[0].residuals_, interval)  # checks the level before any work
    form = "csv" if out is None else form_of(out)
    if as_json and form in ("parquet", "arrow"):
        raise ParameterError(f"--json: --out {out} is no JSON; expected one of the two")
    form = "jsonl" if as_json else form
    made = _FORMS[form](_tables(model, data, proba=proba, header=header, interval=interval))
    if out is not None and out != "-":
        write_atomically(check_target(out), made)
        return
    sys.stdout.flush()
    for chunk in made:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def form_of(out: str) -> str:
    """The format of the output by its suffix: csv where there is none that is known."""
    suffix = Path(out).suffix.lower().removeprefix(".")
    if suffix in _REFUSED:
        raise ParameterError(f"--out {out}: cannot be written; expected .csv, .jsonl, .parquet, .arrow or .feather")
    return {"pq": "parquet", "feather": "arrow", "ipc": "arrow", "json": "jsonl", "ndjson": "jsonl"}.get(
        suffix, suffix if suffix in _FORMS else "csv"
    )


#: Formats whose suffix promises something else than text.
_REFUSED = ("xlsx", "xls", "ods", "gz", "bz2", "xz", "zip", "zst", "lz4", "db", "sqlite", "npy", "npz", "pkl")


def _tables(model: Any, data: str, *, proba: bool, header: bool, interval: float | None) -> Iterator[pa.Table]:
    """The predictions, block by block."""
    found = False
    for block in blocks_of(data, types_of(model), header=header):
        if block.num_rows:
            yield _predictions(model, block, proba, interval)
            found = True
    if not found:
        raise DataFileError(f"{data}: has no rows")


def _as_csv(tables: Iterator[pa.Table], delimiter: str = ",") -> Iterator[bytes]:
    for number, table in enumerate(tables):
        yield _lines(table, delimiter, header=number == 0)


def _as_json(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    for table in tables:
        yield "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def _as_parquet(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    return _by_writer(tables, pa.parquet.ParquetWriter)


def _as_arrow(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    return _by_writer(tables, pa.ipc.new_file)


def _by_writer(tables: Iterator[pa.Table], open_writer: Callable[..., Any]) -> Iterator[bytes]:
    """The bytes that a writer of Arrow makes of the blocks, handed on after each: none is kept."""
    sink = _Sink()
    first = next(tables)
    writer = open_writer(pa.PythonFile(sink, mode="w"), first.schema)
    for table in itertools.chain([first], tables):
        writer.write_table(table)
        yield sink.taken()
    writer.close()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that keeps what was written until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._written: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._written.append(bytes(content))
        return len(self._written[-1])

    def taken(self) -> bytes:
        content = b"".join(self._written)
        self._written.clear()
        return content


_FORMS: dict[str, Callable[[Iterator[pa.Table]], Iterator[bytes]]] = {
    "csv": _as_csv,
    "tsv": partial(_as_csv, delimiter="\t"),
    "jsonl": _as_json,
    "parquet": _as_parquet,
    "arrow": _as_arrow,
}


def bytes_of(table: pa.Table, form: str) -> Iterator[bytes]:
    """The content of a file of that form."""
    return _FORMS[form](iter([table]))


def types_of(model: Any) -> dict[str, str]:
    """Names and types of the columns that a model reads."""
    if isinstance(model, MultiOutputTableModel):
        return model.types_
    if isinstance(model, TableModel):
        return dict(model.encoder_.types_)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ParameterError(
            "the model was fitted to an array without names of columns; expected one fitted to a table"
        )
    return {str(name): "double" for name in names}


def _predictions_of_all(model: MultiOutputTableModel, block: pa.Table, proba: bool, interval: float | None) -> pa.Table:
    """The columns of each target under its name, and of labels their list before them."""
    columns: dict[str, Any] = {}
    for target, one in model.models.items():
        own = _predictions(
            one,
            block,
            proba and hasattr(one, "predict_proba"),
            interval if len(getattr(one, "residuals_", ())) else None,
        )
        columns[target] = own["prediction"]
        for name in own.column_names[1:]:
            columns[f"{target} {name}"] = own[name]
    if model.labels is not None:
        said = pa.table({target: columns[target] for target in model.targets})
        columns = {model.labels: pa.array([";".join(row) for row in sets_of(said, model.labels)]), **columns}
    return pa.table(columns)


def _predictions(model: Any, block: pa.Table, proba: bool, interval: float | None) -> pa.Table:
    if isinstance(model, MultiOutputTableModel):
        return _predictions_of_all(model, block, proba, interval)
    columns: dict[str, Any] = {}
    if proba:
        p = np.asarray(model.predict_proba(block))
        classes = np.asarray(getattr(model, "classes_", np.arange(p.shape[1])))  # a mixture numbers its components
        columns["prediction"] = np.asarray(model.predict(block)) if len(classes) == 0 else classes[p.argmax(axis=1)]
        columns |= {f"p({label})": p[:, j] for j, label in enumerate(classes)}
    else:
        columns["prediction"] = np.asarray(model.predict(block))
    if interval is not None:
        half = half_width(model.residuals_, interval)
        columns |= {"lower": columns["prediction"] - half, "upper": columns["prediction"] + half}
    return pa.table(
        {name: pa.array(values.tolist() if values.dtype.kind in "UO" else values) for name, values in columns.items()}
    )


def _lines(table: pa.Table, delimiter: str, *, header: bool) -> bytes:
    # The header is written by hand: the writer of Arrow quotes all names.
    buffer = pa.BufferOutputStream()
    names = io.StringIO()
    csv.writer(names, lineterminator="\n", delimiter=delimiter).writerow(table.column_names)
    # Quotes only where a label needs them: the writer would put all text into quotes.
    text = [column for column in table.columns if pa.types.is_string(column.type)]
    odd = any(pc.any(pc.match_substring_regex(column, f'["{delimiter}\r\n]')).as_py() for column in text)
    quoting = "needed" if odd else "none"
    pa.csv.write_csv(
        table, buffer, pa.csv.WriteOptions(include_header=False, quoting_style=quoting, delimiter=delimiter)
    )
    rows: bytes = buffer.getvalue().to_pybytes()
    return names.getvalue().encode() + rows if header else rows
