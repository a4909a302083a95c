"""``epicycle cv``: cross-validation of a model, or of the one that a train.py defines."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_classifier

from epicycle.automl._metrics import judge_for
from epicycle.automl._new_rows import read_rows
from epicycle.automl._splitting import folds as folds_of, group_labels, order_of
from epicycle.core._exceptions import ParameterError
from epicycle.io import load
from epicycle.select import k_fold

__all__ = ["run_cv"]


def run_cv(
    path: Path, data: str, *, target: str | None, folds: int, metric: str | None, groups: str | None, order: str | None,
    seed: int, n_jobs: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Fit on all folds but one and score on that one, for every fold."""
    model = _model(path)
    rows = read_rows(data, model, target, fitted=False)
    task = "classification" if is_classifier(model) else "regression"
    judge = judge_for(metric, task, rows.y)
    labels = None if groups is None else group_labels(rows.table, groups)
    table, y = rows.table, rows.y
    column, at = (None, None) if groups is not None else order_of(table, order, (rows.target,))
    if at is not None:
        table, y = table.take(at), y[at]
    splits = folds_of(y, task=task, groups=labels, ordered=at is not None, seed=seed, k=folds)
    found = k_fold({"model": clone(model)}, table, y, cv=splits, scoring=judge.scoring_argument, refit=False,
                   n_jobs=n_jobs, random_state=seed)  # fmt: skip
    scores = [judge.shown(float(score)) for score in found.scores["model"]]
    mean, error = judge.shown(found.score), found.std_error
    if as_json:
        print(json.dumps({
            "model": str(path), "data": data, "metric": judge.name, "score": mean,
            "standard_error": None if error != error else error, "folds": scores, "order": column, "groups": groups,
        }, indent=2))  # fmt: skip
        return
    how = f"in order of {column}" if column else f"by {groups}" if groups else "at random"
    print(f"{judge.label} {mean:.4g} (standard error {error:.2g}), {len(scores)} folds {how}, {len(y):,} rows")
    print("  folds: " + ", ".join(f"{score:.4g}" for score in scores))


def _model(path: Path) -> Any:
    """The model of a file, or what the script calls `model`."""
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
