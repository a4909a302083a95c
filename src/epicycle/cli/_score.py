"""``epicycle cv`` and ``epicycle compare``: cross-validation of a model, and a paired test of two models."""

from __future__ import annotations

import json
import runpy
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_classifier

from epicycle.automl._metrics import compare_losses, metric_for
from epicycle.automl._parts import folds as folds_of, group_labels, order_of
from epicycle.automl.tables._labelled_rows import check_supervised, read_rows, refuse_feature
from epicycle.core._exceptions import ParameterError
from epicycle.io import load
from epicycle.select import k_fold
from epicycle.stats._class_scores import row_losses


def run_cv(
    path: Path,
    data: str,
    *,
    target: str | None,
    folds: int,
    metric: str | None,
    groups: str | None,
    order: str | None,
    header: bool,
    seed: int,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Fit on all folds but one and score on that one, for every fold."""
    model = _model(path)
    rows = read_rows(data, model, target, fitted=False, header=header)
    task = "classification" if is_classifier(model) else "regression"
    measured = metric_for(metric, task, rows.y)
    labels = None if groups is None else group_labels(rows.table, groups)
    table, y = rows.table, rows.y
    column, at = (None, None) if groups is not None else order_of(table, order, (rows.target,))
    if at is not None:
        table, y = table.take(at), y[at]
    model, table = _for_target(model, table, rows.target, groups)
    splits = folds_of(y, task=task, groups=labels, ordered=at is not None, seed=seed, k=folds)
    found = k_fold(
        {"model": model},
        table,
        y,
        cv=splits,
        scoring=measured.scoring_argument,
        refit=False,
        n_jobs=n_jobs,
        random_state=seed,
    )
    scores = [measured.shown(float(score)) for score in found.scores["model"]]
    mean, error = measured.shown(found.score), found.std_error
    if as_json:
        print(
            json.dumps(
                {
                    "model": str(path),
                    "data": data,
                    "metric": measured.name,
                    "score": mean,
                    "standard_error": None if error != error else error,
                    "folds": scores,
                    "order": column,
                    "groups": groups,
                },
                indent=2,
            )
        )
        return
    how = f"in order of {column}" if column else f"by {groups}" if groups else "at random"
    print(f"{measured.label} {mean:.4g} (standard error {error:.2g}), {len(scores)} folds {how}, {len(y):,} rows")
    print("  folds: " + ", ".join(f"{score:.4g}" for score in scores))


def _for_target(model: Any, table: Any, target: str, groups: str | None) -> tuple[Any, Any]:
    """An unfitted model, and the columns that it may learn from: never the target, whatever column that is."""
    model, apart = clone(model), {name for name in (target, groups) if name is not None}
    for one in getattr(model, "members", [model]):
        columns = getattr(one, "columns", None)
        if isinstance(columns, dict):
            # The column that the model predicted until now is no feature either.
            kinds = {name: "drop" if kind == "target" or name in apart else kind for name, kind in columns.items()}
            one.set_params(columns={**kinds, target: "target"})
    return model, table.drop_columns(sorted(apart))


def _model(path: Path) -> Any:
    """The model of a file, or the variable `model` of a script."""
    if path.suffix != ".py":
        return load(path)
    try:
        found = runpy.run_path(str(path), run_name="epicycle_cv").get("model")
    except OSError:
        raise
    except Exception as error:
        raise ParameterError(f"{path}: cannot be run: {type(error).__name__}: {error}") from None
    if not hasattr(found, "fit"):
        raise ParameterError(f"{path}: defines no `model` with a fit")
    return found


def run_comparison(
    first: Path, second: Path, data: str, *, target: str | None, header: bool, seed: int, as_json: bool
) -> None:
    """Print which model has the smaller mean loss, with its interval and p-value."""
    a, b = load(first), load(second)
    check_supervised(a)
    check_supervised(b)
    if bool(is_classifier(a)) != bool(is_classifier(b)):
        raise ParameterError(f"{first} and {second}: one predicts classes and one numbers; expected two of a kind")
    own = [getattr(model, "target", None) for model in (a, b)]
    if target is None and None not in own and own[0] != own[1]:
        raise ParameterError(f"{first} predicts {own[0]!r} and {second} {own[1]!r}; expected one target, or --target")
    rows = read_rows(data, a, target, header=header)
    refuse_feature(b, rows.target)
    metric, loss = ("error rate", "error") if is_classifier(a) else ("squared error", "squared_error")
    losses, others = (row_losses(loss, rows.y, model.predict(rows.table)) for model in (a, b))
    names = (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))
    found = compare_losses(losses, others, names=names, metric=metric, seed=seed)
    if as_json:
        print(json.dumps({"a": str(first), "b": str(second), **asdict(found)}, indent=2))
        return
    print(found.verdict)
    print(f"  {metric}: {names[0]} {found.first:.4g}, {names[1]} {found.second:.4g}, on {found.n:,} rows")
    print(
        f"  difference {found.difference:+.4g}, between {found.lower:+.4g} and {found.upper:+.4g} at {found.level:.0%}"
    )
    if found.only_first is not None:
        print(f"  only {names[0]} is right on {found.only_first:,} rows, only {names[1]} on {found.only_second:,}")
    print(f"  {found.test}: p = {found.p_value:.3g}")
