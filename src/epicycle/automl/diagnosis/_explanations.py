"""Partial dependence of the columns of a model, contributions of the columns to single rows, and the worst rows.

The number that is explained is the prediction of a regression, the probability of the rarer of two classes, and of more
classes that of the class which the model predicts for the row (or, for partial dependence, of the most frequent one).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.diagnosis._contributions import contributions
from epicycle.automl.tables._columns import as_numbers, as_text
from epicycle.automl.tables._table_model import TableModel
from epicycle.core._random import stream
from epicycle.stats._class_scores import row_losses

#: Columns with a figure, rows that are averaged over, values of a column, rows drawn one by one.
_COLUMNS, _ROWS, _GRID, _LINES = 6, 200, 15, 12
#: Pairs of orders of a contribution, and rows of the summary.
_PAIRS, _SUMMARY_ROWS = 16, 12
_REFERENCE_ROWS = 500
#: Rows with the largest losses, and columns of which they show the values.
_WORST, _VALUES = 10, 5


class Explained:
    """A model and the number that is explained.

    Parameters
    ----------
    model : TableModel
    table : pyarrow.Table
        Test rows.
    y : ndarray
    classes : ndarray or None
    """

    def __init__(self, model: TableModel, table: pa.Table, y: np.ndarray, classes: np.ndarray | None) -> None:
        names = [name for name in model.encoder_.columns_ if name in table.column_names]
        self.model, self.table, self.y, self.classes = model, table.select(names), y, classes
        self.label: Any = None
        if classes is not None:
            counts = np.array([np.sum(y == label) for label in classes])
            at = int(np.argmin(counts)) if len(classes) == 2 and counts[0] != counts[1] else len(classes) - 1
            self.label = classes[at if len(classes) == 2 else int(np.argmax(counts))]

    @property
    def what(self) -> str:
        """Name of the number."""
        return "prediction" if self.classes is None else f"p({self.label})"

    def predict(self, table: pa.Table, label: Any = None) -> np.ndarray:
        """The number of each row."""
        if self.classes is None:
            return np.asarray(self.model.predict(table), dtype=np.float64)
        wanted = self.label if label is None else label
        if hasattr(self.model, "predict_proba"):
            at = int(np.flatnonzero(np.asarray(self.model.classes_) == wanted)[0])
            return np.ascontiguousarray(np.asarray(self.model.predict_proba(table))[:, at], dtype=np.float64)
        return np.asarray(np.asarray(self.model.predict(table)) == wanted, dtype=np.float64)

    def seconds_per_row(self) -> float:
        """Time of a prediction, measured."""
        part = self.table.slice(0, min(200, self.table.num_rows))
        began = time.perf_counter()
        self.predict(part)
        seconds, rows = time.perf_counter() - began, max(int(part.num_rows), 1)
        return seconds / rows

    def losses(self) -> np.ndarray:
        """The loss of each row: squared error, or minus the logarithm of the probability of its class."""
        if self.classes is None:
            return np.asarray((self.predict(self.table) - self.y) ** 2, dtype=np.float64)
        if hasattr(self.model, "predict_proba"):
            p = np.asarray(self.model.predict_proba(self.table))
            return np.asarray(row_losses("log_loss", self.y, p, np.asarray(self.model.classes_)))
        return np.asarray(np.asarray(self.model.predict(self.table)) != self.y, dtype=np.float64)


def partial_dependence(
    explained: Explained, names: Sequence[str], kinds: dict[str, str], seed: int
) -> list[dict[str, Any]]:
    """The mean prediction by the value of each column, and the lines of some rows (individual expectations)."""
    table = explained.table
    rows = stream(seed, "partial dependence").permutation(table.num_rows)[:_ROWS]
    some = table.take(pa.array(rows))
    found = []
    for name in [name for name in names if name in table.column_names][:_COLUMNS]:
        made = _one_dependence(explained, some, table, name, kinds.get(name, ""))
        if made is not None:
            found.append({**made, "name": name, "of": explained.what, "rows": some.num_rows})
    return found


def _one_dependence(
    explained: Explained, some: pa.Table, table: pa.Table, name: str, kind: str
) -> dict[str, Any] | None:
    if kind == "number":
        values = as_numbers(table[name])
        known = np.sort(values[~np.isnan(values)])
        if len(known) == 0 or known[0] == known[-1]:
            return None
        low, high = np.quantile(known, [0.02, 0.98])
        distinct = np.unique(known[(known >= low) & (known <= high)])
        # Values that occur: between them the model was not asked.
        grid = distinct[np.unique(np.linspace(0, len(distinct) - 1, min(_GRID, len(distinct))).astype(int))]
        whole = pa.types.is_integer(table.schema.field(name).type)
        given: list[Any] = [int(v) if whole else float(v) for v in grid]
        place: dict[str, Any] = {"x": [float(v) for v in grid]}
    elif kind == "category":
        counts = as_text(table[name]).drop_null().value_counts()
        pairs = zip(counts.field("counts").to_pylist(), counts.field("values").to_pylist(), strict=True)
        ranked = sorted(pairs, key=lambda pair: (-pair[0], pair[1]))[:_GRID]
        if sum(count for count, _ in ranked) < 0.5 * table.num_rows:  # codes and names: hardly a level comes again
            return None
        given = [level for _, level in ranked]
        place = {"levels": [str(level)[:40] for level in given]}
    else:
        return None
    if len(given) < 2:
        return None
    at = table.column_names.index(name)
    type_ = some.schema.field(name).type if kind == "number" and not _is_text(some, name) else pa.string()
    n = some.num_rows
    parts = []
    for value in given:
        filled = pa.array([value] * n) if type_ == pa.string() else pa.array([value] * n).cast(type_, safe=False)
        parts.append(some.set_column(at, name, filled))
    predicted = explained.predict(pa.concat_tables(parts)).reshape(len(given), n)
    error = predicted.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(given))
    lines = predicted[:, np.linspace(0, n - 1, min(_LINES, n)).astype(int)] if kind == "number" else predicted[:, :0]
    return {
        **place,
        "mean": predicted.mean(axis=1).tolist(),
        "error": error.tolist(),
        "lines": lines.T.tolist(),
    }


def _is_text(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def waterfalls(
    explained: Explained, rows_in_file: np.ndarray, reference: pa.Table, seconds: float, seed: int
) -> dict[str, Any]:
    """Contributions of the columns to a typical, the best and the worst row, and their mean size over some rows."""
    losses = explained.losses()
    order = np.argsort(losses, kind="stable")
    chosen = {"Typical row": order[len(order) // 2], "Best row": order[0], "Worst row": order[-1]}
    some = np.unique(np.linspace(0, reference.num_rows - 1, _REFERENCE_ROWS).astype(int))
    reference = reference.select(explained.table.column_names).take(pa.array(some))
    width = explained.table.num_columns + 1
    each = 2 * width * explained.seconds_per_row()
    pairs = int(np.clip(0.5 * seconds / max(3 * each, 1e-9), 0, _PAIRS))
    if pairs < 4:
        return {}
    found = []
    for title, i in chosen.items():
        one = explained.table.slice(int(i), 1)
        label = None if explained.classes is None else explained.model.predict(one)[0]
        label = explained.label if explained.classes is not None and len(explained.classes) == 2 else label
        made = contributions(_of_label(explained, label), one, reference, pairs=pairs, seed=seed)
        ranked = np.argsort(-np.abs(made.values), kind="stable")[:10]
        found.append(
            {
                "title": f"{title}, number {int(rows_in_file[i]):,} of the file",
                "of": explained.what if label is None else f"p({label})",
                "target": _plain(explained.y[i]),
                "start": made.start,
                "end": made.end,
                "contributions": [
                    {
                        "name": made.names[j],
                        "value": _shown(one[made.names[j]][0].as_py()),
                        "mean": float(made.values[j]),
                        "se": float(made.errors[j]),
                    }
                    for j in ranked
                ],
            }
        )
    rows = int(np.clip(0.5 * seconds / max(4 * each, 1e-9), 0, _SUMMARY_ROWS))
    summary: list[dict[str, Any]] = []
    if rows >= 6:
        some = stream(seed, "summary").permutation(explained.table.num_rows)[:rows]
        sizes = np.array(
            [
                np.abs(
                    contributions(
                        explained.predict, explained.table.slice(int(i), 1), reference, pairs=4, seed=seed
                    ).values
                )
                for i in some
            ]
        )
        means, errors = sizes.mean(axis=0), sizes.std(axis=0, ddof=1) / np.sqrt(len(sizes))
        names = explained.table.column_names
        summary = [
            {"name": names[j], "mean": float(means[j]), "se": float(errors[j])}
            for j in np.argsort(-means, kind="stable")[:15]
        ]
    return {"rows": found, "summary": summary, "summary_rows": rows, "of": explained.what}


def worst_rows(explained: Explained, rows_in_file: np.ndarray, names: Sequence[str]) -> dict[str, list[Any]]:
    """The rows with the largest losses: their number in the file, target, prediction, and values of some columns."""
    losses = explained.losses()
    worst = np.argsort(-losses, kind="stable")[:_WORST]
    some = explained.table.take(pa.array(worst))
    predicted = explained.model.predict(some)
    size = losses[worst] if explained.classes is not None else predicted - explained.y[worst]
    found: dict[str, list[Any]] = {
        "row of the file": [int(row) for row in rows_in_file[worst]],
        "loss" if explained.classes is not None else "error": [float(value) for value in size],
        "target": [_plain(value) for value in explained.y[worst]],
        "prediction": [_plain(value) for value in predicted],
    }
    kept = [name for name in names if name in some.column_names][:_VALUES]
    most = 40 if len(kept) > 1 else 120  # a table of texts alone has room
    for name in kept:
        found[name] = [v if isinstance(v, int | float) else _shown(v, most) for v in some[name].to_pylist()]
    return found


def _of_label(explained: Explained, label: Any) -> Callable[[pa.Table], np.ndarray]:
    return lambda table: explained.predict(table, label)


def _shown(value: Any, most: int = 40) -> str:
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 or not value.is_integer() else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    words = str(value)
    return words if len(words) <= most else f"{words[: most - 3].rstrip()}..."


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
