"""Studies with measured confounders, for the methods of TreatmentEffect and for identified effects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.coverage.case import Case
from epicycle import GradientBoostingClassifier, GradientBoostingRegressor, TreatmentEffect
from epicycle.causal import CausalGraph, identify

#: X, outcome, treatment, and the effect by estimand.
Study = tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, float]]


def _score(X: np.ndarray) -> np.ndarray:
    return expit(0.6 * X[:, 0] - 0.4 * X[:, 1])


def _targets() -> dict[str, float]:
    """Mean effects 2 + x0 over the populations of propensity e, by Gauss and Hermite's rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x0, x1 = np.meshgrid(nodes, nodes, indexing="ij")
    mass = np.outer(weights, weights)
    e = expit(0.6 * x0 - 0.4 * x1)
    densities = {"ate": np.ones_like(e), "att": e, "atc": 1 - e, "ato": e * (1 - e)}
    return {name: 2 + float(np.average(x0, weights=mass * h)) for name, h in densities.items()}


_TARGETS = _targets()


def linear(seed: int, n: int) -> Study:
    """Three normal covariates, two of which confound; effects 2 + x0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    t = (rng.random(n) < _score(X)).astype(int)
    return X, 1 + X[:, 0] + 0.5 * X[:, 1] + t * (2 + X[:, 0]) + rng.normal(size=n), t, _TARGETS


def randomised(seed: int, n: int) -> Study:
    """Treated by lot; the effect is 2 for all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    t = rng.permutation(np.arange(n) % 2)
    return X, X[:, 0] + 2 * t + rng.normal(size=n), t, dict.fromkeys(_TARGETS, 2.0)


def one_effect(seed: int, n: int) -> Study:
    """Confounded as in :func:`linear`; the effect is 2 for all."""
    X, y, t, _ = linear(seed, n)
    return X, y - t * X[:, 0], t, dict.fromkeys(_TARGETS, 2.0)


def doses(seed: int, n: int) -> Study:
    """A numeric treatment; 2 for each unit of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    t = X @ [0.5, -0.5, 0.0] + rng.normal(size=n)
    return X, X[:, 0] + 2 * t + rng.normal(size=n), t, dict.fromkeys(_TARGETS, 2.0)


def four_groups(seed: int, n: int) -> Study:
    """Four groups of different effects and propensities."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, size=n, p=[0.1, 0.2, 0.3, 0.4])
    t = (rng.random(n) < expit(0.5 * group - 0.8)).astype(int)
    return group[:, None].astype(float), group + t * (1 + group) + rng.normal(size=n), t, {"ate": 3.0}


def few_treated(seed: int, n: int) -> Study:
    """One row in nine is treated, so that nearest controls are near also where none is taken twice."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    t = (rng.random(n) < expit(0.4 * X[:, 0] - 2.1)).astype(int)
    return X, 1 + X[:, 0] + 0.5 * X[:, 1] + 2 * t + rng.normal(size=n), t, {"att": 2.0}


def curved(seed: int, n: int) -> Study:
    """Propensity and outcome that are not linear in the covariates; effects 2 + x1, 2 on average."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    t = (rng.random(n) < expit(1.5 * np.abs(X[:, 0]) - 0.75)).astype(int)
    return X, 2 * np.abs(X[:, 0]) + t * (2 + X[:, 1]) + 0.5 * rng.normal(size=n), t, {"ate": 2.0}


def smooth_row(seed: int, n: int) -> Study:
    """Effects 1 + x0 of rows in the unit cube about 0; that of the row 0 is 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    t = (rng.random(n) < 0.5 + 0.2 * X[:, 1]).astype(int)
    return X, X[:, 1] + t * (1 + X[:, 0]) + 0.5 * rng.normal(size=n), t, {"cate": 1.0}


def _average(
    method: str, estimand: str, draw: Callable[[int, int], Study], n: int, arguments: dict[str, Any], seed: int
) -> bool:
    X, y, t, truth = draw(seed, n)
    low, high = TreatmentEffect(estimand, method, **arguments).fit(X, y, treatment=t).interval_
    return bool(low <= truth[estimand] <= high)


def _row(n: int, seed: int) -> bool:
    X, y, t, truth = smooth_row(seed, n)
    model = TreatmentEffect("cate", "causal_forest", n_folds=2).fit(X, y, treatment=t)
    low, high = model.predict_interval(np.zeros((1, 3)))
    return bool(low[0] <= truth["cate"] <= high[0])


def _cases() -> list[Case]:
    plain: dict[str, Any] = {}
    trees = {"n_estimators": 60, "max_leaf_nodes": 6, "min_samples_leaf": 10}
    boosting = {
        "n_folds": 2,
        "outcome_model": GradientBoostingRegressor(**trees),
        "propensity_model": GradientBoostingClassifier(**trees | {"n_estimators": 30}),
    }
    settings: list[tuple[str, str, Callable[[int, int], Study], str, int, dict[str, Any]]] = [
        ("difference", "ate", randomised, "treated by lot", 300, plain),
        ("regression", "ate", linear, "linear", 300, plain),
        ("regression", "att", linear, "linear", 300, plain),
        ("matching", "ate", linear, "linear", 300, plain),
        ("matching", "att", linear, "linear", 300, {"n_neighbors": 3}),
        ("matching", "att", linear, "linear", 1000, {"distance": "propensity"}),
        ("matching", "att", few_treated, "1 in 9 treated", 500, {"replacement": False}),
        ("matching", "ate", four_groups, "four groups", 300, {"distance": "exact"}),
        ("strata", "ate", four_groups, "four groups", 300, {"n_strata": 20}),
        ("ipw", "ate", linear, "linear", 300, plain),
        ("ipw", "ato", linear, "linear", 300, plain),
        ("cbps", "ate", linear, "linear", 300, plain),
        ("cbps", "atc", linear, "linear", 300, plain),
        ("entropy", "ate", linear, "linear", 300, plain),
        ("entropy", "att", linear, "linear", 300, plain),
        ("aipw", "ate", linear, "linear", 300, plain),
        ("aipw", "att", linear, "linear", 300, plain),
        ("aipw", "ate", curved, "curved", 1000, boosting),
        ("tmle", "ate", linear, "linear", 300, plain),
        ("tmle", "att", linear, "linear", 300, plain),
        ("dml", "ate", one_effect, "linear, one effect", 300, plain),
        ("dml", "ate", doses, "numeric treatment", 300, plain),
    ]
    found = []
    for method, estimand, draw, studies, n, arguments in settings:
        shown = "".join(
            f", {name}=boosting" if name.endswith("model") else f", {name}={value!r}"
            for name, value in arguments.items()
        )
        call = f'TreatmentEffect("{estimand}", "{method}"{shown})'.replace("'", '"')
        found.append(Case(call, studies, n, partial(_average, method, estimand, draw, n, arguments)))
    forest = 'TreatmentEffect("cate", "causal_forest", n_folds=2).predict_interval'
    return [
        *found,
        Case(forest, "effect of the row in the middle", 2000, partial(_row, 2000)),
    ]


_BACK = CausalGraph("z -> x -> y; z -> y")
_FRONT = CausalGraph("x -> m -> y; x <-> y")


def _back_door(seed: int, n: int) -> tuple[dict[str, np.ndarray], float]:
    rng = np.random.default_rng(seed)
    z = rng.random(n) < 0.4
    x = rng.random(n) < 0.25 + 0.5 * z
    y = (rng.random(n) < 0.2 + 0.3 * x + 0.4 * z).astype(float)
    return {"z": z.astype(int), "x": x.astype(int), "y": y}, 0.3


def _front_door(seed: int, n: int) -> tuple[dict[str, np.ndarray], float]:
    rng = np.random.default_rng(seed)
    u = rng.random(n) < 0.5
    x = (rng.random(n) < 0.2 + 0.6 * u).astype(int)
    m = (rng.random(n) < 0.1 + 0.7 * x).astype(int)
    y = (rng.random(n) < 0.1 + 0.4 * m + 0.4 * u).astype(float)
    return {"x": x, "m": m, "y": y}, 0.28


def _identified(graph: CausalGraph, draw: Any, n: int, options: dict[str, Any], seed: int) -> bool:
    data, truth = draw(seed, n)
    found = identify(graph, "x", "y").estimate(data, **options).effect(1, 0)
    return bool(found.low <= truth <= found.high)


IDENTIFIED = [
    Case("identify(...).estimate", "back door, tables", 800, partial(_identified, _BACK, _back_door, 800, {})),
    Case("identify(...).estimate", "front door, tables", 800, partial(_identified, _FRONT, _front_door, 800, {})),
    Case(
        'identify(...).estimate(method="regression")',
        "back door",
        800,
        partial(_identified, _BACK, _back_door, 800, {"method": "regression"}),
    ),
    Case(
        'identify(...).estimate(method="weighting")',
        "back door",
        800,
        partial(_identified, _BACK, _back_door, 800, {"method": "weighting"}),
    ),
]
EFFECTS = _cases()
