"""From an identified effect and data to a `CausalEstimate`."""

from __future__ import annotations

import warnings
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.causal.identification import _regression_estimates as regression
from epicycle.causal.identification._causal_estimate import CausalEstimate
from epicycle.causal.identification._columns import columns_of, numeric
from epicycle.causal.identification._tables import TableFunctional, count_table
from epicycle.core._checks import count, number, open_unit
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core._random import stream
from epicycle.data._target import as_weight

if TYPE_CHECKING:
    from epicycle.causal.identification._identification import Identification

Array = np.ndarray
#: A variable with more values is no category to "auto".
MOST_VALUES = 20
_MOST_WEIGHT = 1e15  # that rows may stand for: a resample counts them


def estimate(
    question: Identification,
    data: Any,
    *,
    sample_weight: Any,
    method: str,
    interval: str,
    prior: float,
    confidence: float,
    n_resamples: int,
    regressor: Any,
    classifier: Any,
    random_state: Any,
) -> CausalEstimate:
    """Estimate as `Identification.estimate` describes."""
    check_parameter("estimate", "method", method, Choice("auto", "tables", "regression", "weighting"))
    check_parameter("estimate", "interval", interval, Choice("influence", "bootstrap", "posterior"))
    open_unit("confidence", confidence)
    count("n_resamples", n_resamples, low=2)
    number("prior", prior, low=0.0)
    formula = question.formula_of()
    if len(question.outcome) != 1:
        raise ParameterError(f"outcome={list(question.outcome)}: expected one node for an estimate")
    asked = {*question.treatment, *question.outcome, *question.given}
    names = tuple(v for v in question.graph.nodes if v in formula.variables | asked)
    columns = columns_of(data, names)
    n = len(columns[names[0]])
    weight = as_weight(sample_weight, n)
    v = np.ones(n) if weight is None else weight
    if not 1e-100 < v.sum() < _MOST_WEIGHT:
        raise DataError(f"sample_weight: adds up to {v.sum():.1e}; expected between 1e-100 and {_MOST_WEIGHT:.0e} rows")
    columns = _with_weight(columns, v)
    if method == "auto":
        few = all(len(np.unique(c)) <= MOST_VALUES for c in columns.values())
        method = "tables" if few else "regression"
    if method != "tables" and interval == "posterior":
        raise ParameterError("interval='posterior': expected method='tables', which has a posterior distribution")
    rng = stream(random_state, "estimate")
    if method == "tables":
        return _by_tables(question, columns, names, v[v > 0], interval, prior, confidence, n_resamples, rng)
    return _by_models(question, data, v, method, interval, confidence, n_resamples, regressor, classifier, rng)


def _with_weight(columns: dict[str, Array], v: Array) -> dict[str, Array]:
    """Columns without the rows of weight zero, whose values may occur nowhere else."""
    return columns if (v > 0).all() else {name: column[v > 0] for name, column in columns.items()}


def _by_tables(
    question: Identification,
    columns: dict[str, Array],
    names: tuple[str, ...],
    v: Array,
    interval: str,
    prior: float,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> CausalEstimate:
    counts = count_table(columns, names, v)
    levels = dict(zip(names, counts.levels, strict=True))
    y = numeric(question.outcome[0], levels[question.outcome[0]])
    sets = (*question.treatment, *question.given)
    combinations = list(product(*(levels[v].tolist() for v in sets)))
    labels = [c[0] for c in combinations] if len(sets) == 1 else combinations
    functional = TableFunctional(question, counts)
    weight = counts.table + prior
    n = float(counts.table.sum())
    if interval == "posterior" and prior == 0:
        raise ParameterError("prior=0: expected a positive number of pseudo-counts for interval='posterior'")
    p = weight / weight.sum()
    distribution = functional.distribution(p).real
    _require_defined(distribution, labels, sets)
    draws = None
    if interval == "influence":
        covariance = functional.covariance(p, y, n)
    else:
        shares = counts.table.ravel() / n

        def drawn() -> Array:
            if interval == "posterior":
                return np.asarray(rng.dirichlet(weight.ravel()))
            size = max(1, round(n))
            return np.asarray((rng.multinomial(size, shares) * (n / size) + prior) / weight.sum())

        draws = _defined_draws(functional.means((drawn() for _ in range(n_resamples)), y))
        covariance = np.atleast_2d(np.cov(draws.T))
    mean = distribution @ y
    return CausalEstimate(
        str(question.query), "tables", interval, labels, mean, covariance, confidence, y, distribution, draws
    )


def _require_defined(distribution: Array, labels: list[Any], sets: tuple[str, ...]) -> None:
    if (bad := np.isnan(distribution).any(axis=1)).any():
        level = labels[int(np.argmax(bad))]
        raise DataError(
            f"data: the effect at {', '.join(sets)} = {level!r} depends on combinations of values that do not occur "
            "(no overlap); expected rows there, prior > 0, or method='regression', which extrapolates"
        )


def _defined_draws(draws: Any) -> Array:
    """Resamples without undefined means; a few that lack a combination of values are left out."""
    out = np.array(draws)
    good = np.isfinite(out).all(axis=1)
    if good.mean() < 0.5 or good.sum() < 2:
        raise DataError("data: most resamples lack combinations of values that the formula needs; expected prior > 0")
    if not good.all():
        lost = f"{(~good).sum()} of {len(good)} resamples have undefined effects and were left out"
        warnings.warn(lost, stacklevel=5)
    return np.asarray(out[good])


def _by_models(
    question: Identification,
    data: Any,
    v: Array,
    method: str,
    interval: str,
    confidence: float,
    n_resamples: int,
    regressor: Any,
    classifier: Any,
    rng: np.random.Generator,
) -> CausalEstimate:
    (outcome,) = question.outcome
    if len(question.treatment) != 1 or question.given:
        raise ParameterError(
            f"method={method!r}: expected one treatment and nothing given, got {question.query}; use method='tables'"
        )
    (treatment,) = question.treatment
    others, front = _strategy(question, method)
    columns = _with_weight(columns_of(data, (treatment, outcome, *others)), v)
    arms = regression.arms_of(columns, treatment, numeric(outcome, columns[outcome]), others, v[v > 0])
    models = _models(regressor, classifier)
    by = {"regression": regression.by_regression, "weighting": regression.by_weighting}[method]
    if front:
        by = regression.by_front_door
        if interval == "influence":
            interval = "bootstrap"  # the influence through mediators needs their density
    mean = by(arms, models)
    n, draws = len(arms.y), None
    if interval == "influence":
        psi = regression.influence(arms, models)
        covariance = (psi * arms.v[:, None]).T @ psi / arms.v.sum() ** 2
    else:
        resamples = (arms.rows(rng.integers(n, size=n)) for _ in range(n_resamples))
        draws = _defined_draws([by(sample, models) for sample in resamples])
        covariance = np.atleast_2d(np.cov(draws.T))
    levels = arms.levels.tolist()
    query = str(question.query)
    return CausalEstimate(
        query, method, interval, levels, mean, covariance, confidence, draws=draws, adjusted_for=others
    )


def _strategy(question: Identification, method: str) -> tuple[tuple[str, ...], bool]:
    """The adjustment set, or the mediators of a front door."""
    graph, x, y = question.graph, question.treatment, question.outcome
    if sets := graph.adjustment_sets(x, y):
        return tuple(v for v in graph.nodes if v in sets[0]), False
    if method == "regression" and (doors := graph.front_door(x, y)):
        return tuple(v for v in graph.nodes if v in doors[0]), True
    raise ParameterError(
        f"method={method!r}: {question.query} is identified neither by adjustment nor"
        f"{'' if method == 'regression' else ', with weights,'} by a front door; expected method='tables', with "
        "variables of few values"
    )


def _models(regressor: Any, classifier: Any) -> regression.Models:
    from epicycle.linear import LinearRegression, LogisticRegression

    # A penalty large enough to keep the fit finite where classes are separable, and too small to bias the weights.
    return regression.Models(regressor or LinearRegression(), classifier or LogisticRegression(C=1e4))
