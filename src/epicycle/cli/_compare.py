"""``epicycle compare``: two models, the same rows, a paired test."""

from __future__ import annotations

import json
from pathlib import Path

from sklearn.base import is_classifier

from epicycle.automl._new_rows import compare_losses, read_rows, row_losses
from epicycle.core._exceptions import ParameterError
from epicycle.io import load

__all__ = ["run_comparison"]


def run_comparison(first: Path, second: Path, data: str, *, target: str | None, seed: int, as_json: bool) -> None:
    """Say which model has the smaller loss, and how sure that is."""
    a, b = load(first), load(second)
    if bool(is_classifier(a)) != bool(is_classifier(b)):
        raise ParameterError(f"{first} and {second}: one predicts classes and one numbers; expected two of a kind")
    rows = read_rows(data, a, target)
    metric, losses, _ = row_losses(a, rows)
    _, others, _ = row_losses(b, rows)
    names = (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))
    found = compare_losses(losses, others, names=names, metric=metric, seed=seed)
    if as_json:
        print(json.dumps({"a": str(first), "b": str(second), **found.to_dict()}, indent=2))
        return
    print(found.verdict)
    print(f"  {metric}: {names[0]} {found.first:.4g}, {names[1]} {found.second:.4g}, on {found.n:,} rows")
    print(
        f"  difference {found.difference:+.4g}, between {found.lower:+.4g} and {found.upper:+.4g} at {found.level:.0%}"
    )
    if found.only_first is not None:
        print(f"  only {names[0]} is right on {found.only_first:,} rows, only {names[1]} on {found.only_second:,}")
    print(f"  {found.test}: p = {found.p_value:.3g}")
