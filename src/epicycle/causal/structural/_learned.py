"""Equations learnt from data: a regression or a classifier for each node that has parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.identification._columns import columns_of, numeric
from epicycle.causal.structural._additive_noise import Regression
from epicycle.causal.structural._mechanism import Classification, Mechanism, Stochastic, Values
from epicycle.causal.structural._noise import Empirical, Finite
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._random import Seed, stream

Array = np.ndarray
#: Integers with more values are numbers.
MOST_CATEGORIES = 10


def equations(data: Any, graph: CausalGraph, models: Any, n_folds: int, random_state: Seed) -> dict[str, Mechanism]:
    """A mechanism for each node."""
    if graph.bidirected or graph.latent:
        edge = " <-> ".join(graph.bidirected[0]) if graph.bidirected else sorted(graph.latent)[0]
        raise ParameterError(
            f"graph: {edge} is an unseen cause, which a regression on the parents cannot separate from their effect; "
            "expected a diagram without bidirected edges and latent nodes, or identify(...).estimate"
        )
    columns = columns_of(data, graph.nodes)
    n = len(next(iter(columns.values())))
    if n < 2 * n_folds:
        raise DataError(f"data: {n} rows; expected at least {2 * n_folds} for {n_folds} folds")
    fold = stream(random_state, "folds").permutation(np.arange(n) % n_folds)
    return {v: _equation(v, columns, graph.parents(v), _model(models, v, columns[v]), fold) for v in graph.nodes}


def _equation(v: str, columns: dict[str, Array], parents: tuple[str, ...], model: Any, fold: Array) -> Mechanism:
    column = columns[v]
    if not parents:
        if is_category(column):
            values, counts = np.unique(column, return_counts=True)
            return Stochastic(Finite(dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))))
        return Stochastic(Empirical(numeric(v, column)))
    encode = encoder(columns, parents)
    X = encode(columns)
    if is_classifier(model):
        return Classification(clone(model).fit(X, column), encode, parents)
    y = numeric(v, column)
    residual = np.empty_like(y)
    for k in np.unique(fold):
        inside = fold != k
        residual[~inside] = y[~inside] - clone(model).fit(X[inside], y[inside]).predict(X[~inside])
    return Regression(clone(model).fit(X, y), encode, parents, Empirical(residual - residual.mean()))


def is_category(column: Array) -> bool:
    """Texts, truth values, and integers with few values."""
    return column.dtype.kind not in "fiu" or (column.dtype.kind in "iu" and len(np.unique(column)) <= MOST_CATEGORIES)


def encoder(columns: Mapping[str, Array], names: tuple[str, ...]) -> Callable[[Values], Array]:
    """Function that turns parents into columns of numbers: texts become indicators of the values seen here."""
    levels = {v: None if columns[v].dtype.kind in "fiub" else np.unique(columns[v]) for v in names}

    def encode(known: Values) -> Array:
        blocks = []
        for v, seen in levels.items():
            column = np.asarray(known[v])
            if seen is None:
                blocks.append(_parent(v, column)[:, None])
            else:
                if strange := set(np.unique(column).tolist()) - set(seen.tolist()):
                    raise ParameterError(f"{v}={next(iter(strange))!r}; expected one of {seen.tolist()}")
                blocks.append((column[:, None] == seen[None, 1:]).astype(np.float64))
        return np.hstack(blocks)

    return encode


def _parent(name: str, column: Array) -> Array:
    """Values of a parent of numbers, such as an intervention gives them."""
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name}={column[0]!r:.80}; expected numbers, as in the data") from None
    if column.dtype.kind == "c" or not np.isfinite(values).all():
        raise ParameterError(f"{name}={column[0]!r:.80}; expected finite real numbers")
    return values


def _model(models: Any, v: str, column: Array) -> Any:
    """The estimator of a node."""
    from epicycle.linear import LinearRegression, LogisticRegression
    from epicycle.tree import GradientBoostingClassifier, GradientBoostingRegressor

    chosen = models.get(v, "linear") if isinstance(models, Mapping) else models
    category = is_category(column)
    if isinstance(chosen, str):
        kinds = {
            "linear": (LinearRegression(), LogisticRegression(C=1e4)),
            "trees": (GradientBoostingRegressor(), GradientBoostingClassifier()),
        }
        if chosen not in kinds:
            raise ParameterError(
                f"models={chosen!r}; expected 'linear', 'trees', an estimator, or a dict of estimators"
            )
        return kinds[chosen][category]
    if not hasattr(chosen, "fit") or not hasattr(chosen, "predict"):
        raise ParameterTypeError(f"models={chosen!r:.80}; expected 'linear', 'trees', an estimator, or a dict of these")
    if is_classifier(chosen) and not category:
        raise ParameterError(f"models: {v!r} is a number, but its model {chosen!r:.60} is a classifier")
    return chosen
