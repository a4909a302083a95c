"""``epicycle predict``: rows in, predictions out, block by block."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from epicycle.automl import TableModel
from epicycle.automl._streams import blocks_of
from epicycle.core._exceptions import DataFileError, ParameterError
from epicycle.io import load
from epicycle.io._atomic import check_target, write_atomically


def run_prediction(
    path: Path, data: str, *, proba: bool, out: str | None, as_json: bool, n_jobs: int | None = None
) -> None:
    """Write a prediction, and probabilities where they are asked for, of every row."""
    model = load(path)
    if n_jobs is not None and isinstance(model, TableModel) and "n_jobs" in model.model_.get_params(deep=False):
        model.model_.set_params(n_jobs=n_jobs)
    if proba and not hasattr(model, "predict_proba"):
        raise ParameterError(f"--proba: {path} is a regression, which has no probabilities")
    made = _made(model, data, proba=proba, as_json=as_json)
    if out is not None and out != "-":
        write_atomically(check_target(out), made)
        return
    sys.stdout.flush()
    for chunk in made:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def _made(model: Any, data: str, *, proba: bool, as_json: bool) -> Iterator[bytes]:
    """The output, block by block."""
    first = True
    for block in blocks_of(data, types_of(model)):
        if block.num_rows:
            yield _written(_predictions(model, block, proba), as_json=as_json, header=first)
            first = False
    if first:
        raise DataFileError(f"{data}: has no rows")


def types_of(model: Any) -> dict[str, str]:
    """Names and types of the columns that a model reads."""
    if isinstance(model, TableModel):
        return dict(model.encoder_.types_)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ParameterError(
            "the model was fitted to an array without names of columns; expected one fitted to a table"
        )
    return {str(name): "double" for name in names}


def _predictions(model: Any, block: pa.Table, proba: bool) -> pa.Table:
    columns: dict[str, Any] = {}
    if proba:
        p = np.asarray(model.predict_proba(block))
        classes = np.asarray(model.classes_)
        columns["prediction"] = np.asarray(model.predict(block)) if len(classes) == 0 else classes[p.argmax(axis=1)]
        columns |= {f"p({label})": p[:, j] for j, label in enumerate(classes)}
    else:
        columns["prediction"] = np.asarray(model.predict(block))
    return pa.table(
        {name: pa.array(values.tolist() if values.dtype.kind in "UO" else values) for name, values in columns.items()}
    )


def _written(table: pa.Table, *, as_json: bool, header: bool) -> bytes:
    if as_json:
        return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    # The header is written by hand: the writer of Arrow quotes all names.
    buffer = pa.BufferOutputStream()
    names = io.StringIO()
    csv.writer(names, lineterminator="\n").writerow(table.column_names)
    # Quotes only where a label needs them: the writer would put all text into quotes.
    text = [column for column in table.columns if pa.types.is_string(column.type)]
    odd = any(pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py() for column in text)
    options = pa.csv.WriteOptions(include_header=False, quoting_style="needed" if odd else "none")
    pa.csv.write_csv(table, buffer, options)
    rows: bytes = buffer.getvalue().to_pybytes()
    return names.getvalue().encode() + rows if header else rows
