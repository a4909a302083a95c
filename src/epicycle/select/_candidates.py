"""The models to choose from: estimators by name, each alone or with a grid of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.select._inputs import check_weights_taken, seeded

__all__ = ["Candidate", "candidates_of"]


@dataclass(frozen=True)
class Candidate:
    """One model of the comparison: what it is called, which of the given models it comes from, and its parameters."""

    name: str
    model: str
    estimator: Any
    parameters: Mapping[str, Any]


def candidates_of(models: Any, seed: int, *, weighted: bool = False) -> list[Candidate]:
    """Every model, and of those with a grid every point of it."""
    named = _named(models)
    found: list[Candidate] = []
    for name, given in named.items():
        estimator, grid = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
            raise ParameterTypeError(
                f"models: {name!r} is {estimator!r:.60}; expected an estimator, or an estimator and its grid"
            )
        if weighted:
            check_weights_taken(name, estimator)
        try:
            points = [{}] if grid is None else list(ParameterGrid(grid))
            for point in points:
                changed = seeded(estimator, seed).set_params(**point)
                found.append(Candidate(_called(name, point), name, changed, point))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"models: the grid of {name!r}: {error}") from None
    if not found:
        raise ParameterError("models: none given; expected at least one estimator")
    kinds = {bool(is_classifier(c.estimator)) for c in found}
    if len(kinds) > 1:
        raise ParameterError("models: classifiers and regressors; expected models of one kind, with one score")
    return found


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        if not all(isinstance(name, str) for name in models):
            raise ParameterTypeError("models: names of models have to be strings")
        return dict(models)
    if hasattr(models, "fit") or isinstance(models, tuple):
        models = [models]
    if not isinstance(models, Sequence) or isinstance(models, str | bytes):
        raise ParameterTypeError(
            f"models={models!r:.60}; expected a dictionary or a list of estimators, each alone or with a grid"
        )
    named: dict[str, Any] = {}
    for given in models:
        estimator = given[0] if isinstance(given, tuple) else given
        base = type(estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator).__name__
        name, number = base, 2
        while name in named:
            name, number = f"{base} {number}", number + 1
        named[name] = given
    return named


def _called(name: str, point: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key.rpartition('__')[2]}={_value(value)}" for key, value in point.items())
    return f"{name} ({shown})" if shown else name


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return type(value).__name__ if hasattr(value, "get_params") else f"{value}"[:40]
