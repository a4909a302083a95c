"""Rows of a source with the target of a model, for scores of it, and labels of one type for those of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import is_classifier, is_regressor

from epicycle.automl.tables._columns import MAX_CLASSES, known_rows, target_values
from epicycle.automl.tables._tables import read_table, source_name
from epicycle.core._exceptions import DataError, ParameterError


@dataclass(frozen=True)
class LabelledRows:
    """Rows with a target: the table without rows whose target is missing, and the indices of the rows in the source."""

    table: pa.Table
    y: np.ndarray
    target: str
    rows: np.ndarray
    left_out: int


def read_rows(
    data: Any, model: Any, target: str | None = None, *, fitted: bool = True, header: bool = True
) -> LabelledRows:
    """Rows of a source with the target of a model; a fitted classifier has to know their classes.

    A fitted model predicts its own target: another column may be given where it means the same, but no feature.
    """
    check_supervised(model)
    table = read_table(data, header=header)
    name = target or getattr(model, "target", None)
    if name is None:
        raise ParameterError("target: the model does not name the column that it predicts; expected --target COLUMN")
    if name not in table.column_names:
        raise DataError(f"{source_name(data)}: has no column {name!r}, the target")
    if fitted:
        refuse_feature(model, name)
    classes = bool(is_classifier(model))
    known = known_rows(table[name], classes=classes)
    if not known.any():
        what = "no row has one" if classes or table[name].null_count == table.num_rows else "holds no numbers"
        raise DataError(f"{source_name(data)}: target {name!r}: {what}; the model predicts numbers")
    if not known.all():
        table = table.filter(pa.array(known))
    y = target_values(table[name], classes=classes, name=name)
    if classes and fitted:
        y, new = like_labels(y, np.asarray(model.classes_))
        if new:
            raise DataError(f"{name!r}: has classes that the model does not know: {', '.join(new[:5])}")
    elif classes and len(np.unique(y)) > min(MAX_CLASSES, len(y) / 2):
        raise DataError(f"target {name!r}: {len(np.unique(y))} different values in {len(y)} rows; expected classes")
    return LabelledRows(table, y, name, np.flatnonzero(known), int((~known).sum()))


def check_supervised(model: Any) -> None:
    """Refuse what does not predict one column."""
    if getattr(model, "targets", None) is not None:
        raise ParameterError(
            f"the model predicts several targets ({', '.join(model.targets[:4])}); expected that of one, in its "
            "folder beside this one"
        )
    if not hasattr(model, "__sklearn_tags__") or not (is_classifier(model) or is_regressor(model)):
        raise ParameterError(
            f"the model is a clustering or another method without a target ({type(model).__name__}); expected one that "
            "predicts a column"
        )


def refuse_feature(model: Any, name: str) -> None:
    """Refuse a target that a fitted model reads as a feature: its score would not be that of a prediction."""
    columns = getattr(getattr(model, "encoder_", None), "columns_", getattr(model, "feature_names_in_", ()))
    if name in columns:
        own = getattr(model, "target", None)
        expected = "the column that it predicts" if own is None else f"{own!r}, the column that it predicts"
        raise DataError(f"target={name!r}: is a feature of the model; expected {expected}")


def like_labels(y: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Targets with the type of the sorted labels, and those that are none of them.

    A file may hold as text or numbers what another holds as booleans: labels of other types are compared as text.
    """
    if y.dtype.kind == labels.dtype.kind:
        return y, [str(label) for label in np.setdiff1d(y, labels)]
    known = {_label_text(label): label for label in labels}
    values, codes = np.unique(y, return_inverse=True)
    texts = [_label_text(value, labels.dtype.kind) for value in values]
    new = [text for text in texts if text not in known]
    return (y, new) if new else (np.array([known[text] for text in texts], dtype=labels.dtype)[codes], [])


def _label_text(label: Any, wanted: str = "") -> str:
    """A label as text; 0 and 1 as false and true where labels are booleans, and these as 0 and 1 among integers."""
    text = str(label).lower() if isinstance(label, bool | np.bool_) or wanted == "b" else str(label)
    if wanted == "b":
        return {"0": "false", "1": "true"}.get(text, text)
    return {"false": "0", "true": "1"}.get(text.lower(), text) if wanted in ("i", "u") else text
