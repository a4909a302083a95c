"""Utility and privacy of drawn rows: scores of models fitted to them, detection, distances to the nearest real row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score

from epicycle.automl._metrics import Metric, metric_for
from epicycle.automl.tables._columns import as_text, check_varies, choose_target, kind_of_column, target_values, task_of
from epicycle.automl.tables._table_encoder import TableEncoder, is_feature
from epicycle.automl.tables._table_model import TableModel
from epicycle.core._exceptions import DataError
from epicycle.neighbors import NearestNeighbors
from epicycle.select._scorers import responses_of
from epicycle.tree import GradientBoostingClassifier, GradientBoostingRegressor

#: Rows that are compared at most.
_ROWS = 5_000
_TREES: dict[str, Any] = {"n_estimators": 100, "random_state": 0}


def kinds_of(table: pa.Table) -> dict[str, str]:
    """The kinds of the columns that a model can use."""
    found = {name: kind_of_column(table[name], name).kind for name in table.column_names}
    return {name: kind for name, kind in found.items() if is_feature(kind)}


def utility(
    real: pa.Table, held: pa.Table, drawn: pa.Table, target: str | None, source: Any
) -> tuple[dict[str, Any] | None, str]:
    """Scores on held-out real rows of boosting learnt from drawn rows and from real ones; None, and why, without."""
    name, _ = choose_target(real, target, source)
    try:
        real, held, drawn = (_with(table, name) for table in (real, held, drawn))
        task = task_of(real[name], "auto")
        classes = task == "classification"
        y, y_held, y_drawn = (target_values(table[name], classes=classes, name=name) for table in (real, held, drawn))
        check_varies(np.concatenate([y, y_held]), name, classes=classes)
        kinds = {column: kind for column, kind in kinds_of(real).items() if column != name}
        if not kinds:
            raise DataError("there is no other column to predict it by")
        metric = metric_for(None, task, np.concatenate([y, y_held, y_drawn]))
        learner = (GradientBoostingClassifier if classes else GradientBoostingRegressor)(**_TREES)
        found: dict[str, Any] = {"target": name, "metric": metric.label, "rows": len(y_held)}
        for key, table, values in (("real", real, y), ("drawn", drawn, y_drawn)):
            found[key] = _score(metric, learner, kinds, table.slice(0, len(real)), values[: len(real)], held, y_held)
        found["constant"] = _constant(metric, y, y_held)
    except DataError as error:
        if target is not None:
            raise
        return None, str(error)
    return found, ""


def _with(table: pa.Table, name: str) -> pa.Table:
    """The rows that have a target."""
    return table.filter(table[name].is_valid()) if table[name].null_count else table


def _score(
    metric: Metric,
    learner: Any,
    kinds: dict[str, str],
    table: pa.Table,
    y: np.ndarray,
    held: pa.Table,
    truth: np.ndarray,
) -> dict[str, float]:
    if len(np.unique(y)) < 2:
        return {"score": _constant(metric, y, truth), "lower": float("nan"), "upper": float("nan")}
    model = TableModel(learner, kinds).fit(table, y)
    score = metric.with_bound(responses_of(model, held, metric.classes), truth, None, 0)
    return {"score": score.score, "lower": score.lower, "upper": score.upper}


def _constant(metric: Metric, y: np.ndarray, truth: np.ndarray) -> float:
    from epicycle.automl._evaluation import constant_model

    model = constant_model(metric.task).fit(np.empty((len(y), 1)), y)
    return metric.shown(metric.score(responses_of(model, np.empty((len(truth), 1)), metric.classes), truth))


def detection(real: pa.Table, held: pa.Table, drawn: pa.Table) -> float:
    """Area under the ROC curve of boosting that tells drawn rows from real ones that it has not seen; 0.5 is chance."""
    n, m = min(len(real), len(drawn) // 2, _ROWS), min(len(held), len(drawn) - len(drawn) // 2, _ROWS)
    kinds = kinds_of(real)
    if not kinds:
        return 0.5
    encoder = TableEncoder(kinds).fit(real)
    first = [encoder.transform(real.slice(0, n)), encoder.transform(drawn.slice(0, n))]
    second = [encoder.transform(held.slice(0, m)), encoder.transform(drawn.slice(len(drawn) - m, m))]
    model = GradientBoostingClassifier(**_TREES, categorical_features=encoder.categorical_ or None)
    model.fit(np.vstack(first), np.repeat([0, 1], n))
    return float(roc_auc_score(np.repeat([0, 1], m), model.predict_proba(np.vstack(second))[:, 1]))


def privacy(real: pa.Table, held: pa.Table, drawn: pa.Table, names: list[str]) -> dict[str, Any]:
    """Distances to the nearest row of the fit, of drawn and of held-out rows; and rows that equal one of them."""
    rows = set(_as_lines(real, names))
    copies = np.array([line in rows for line in _as_lines(drawn, names)])
    alike = np.array([line in rows for line in _as_lines(held, names)])
    found: dict[str, Any] = {
        "rows": len(drawn),
        "held_rows": len(held),
        "copies": int(copies.sum()),
        "copied": float(copies.mean()),
        "held_copied": float(alike.mean()),
    }
    kinds = {name: kind for name, kind in kinds_of(real).items() if name in names}
    if len(kinds) < 2:  # on a line every new number lies beside known ones
        return found
    encoder = TableEncoder(kinds, form="linear").fit(real)
    search = NearestNeighbors(n_neighbors=1).fit(np.asarray(encoder.transform(real)))
    near = {
        name: np.sort(search.kneighbors(np.asarray(encoder.transform(table.slice(0, _ROWS))))[0][:, 0])
        for name, table in (("held", held), ("drawn", drawn))
    }
    # A twentieth of new real rows lie nearer than this to one of the fit.
    threshold = float(np.quantile(near["held"], 0.05))
    found |= {
        "median": float(np.median(near["drawn"])),
        "held_median": float(np.median(near["held"])),
        "threshold": threshold,
        "nearer": float(np.mean(near["drawn"] < threshold)),
        "quantiles": {name: np.quantile(d, np.linspace(0, 1, 51)).tolist() for name, d in near.items()},
    }
    return found


def _as_lines(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    """The rows as texts, of the columns named."""
    return list(zip(*(as_text(table[name]).to_pylist() for name in names), strict=True))
