"""Quantile regression on many rows, without a penalty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

TAU = 0.5


def make(directory: Path, quick: bool) -> Data:
    n, p = (1_000, 5) if quick else (50_000, 20)
    rng = np.random.default_rng(20)
    X = rng.standard_normal((n, p))
    return {"X": X, "y": X @ rng.standard_normal(p) + rng.standard_t(3, n) * (1 + np.abs(X[:, 0]))}


def losses(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Mean pinball loss above the least one found, relative to it."""
    values = {}
    for name, solution in solutions.items():
        r = data["y"] - data["X"] @ solution["coef"] - solution["intercept"]
        values[name] = float(np.maximum(TAU * r, (TAU - 1) * r).mean())
    least = min(values.values())
    return {name: {"loss above the least": (value - least) / least} for name, value in values.items()}


def setup_epicycle(data: Data) -> tuple[Any, Data]:
    from epicycle import QuantileRegressor

    return QuantileRegressor, data


def setup_scikit_learn(data: Data) -> tuple[Any, Data]:
    from sklearn.linear_model import QuantileRegressor

    return QuantileRegressor, data


def fit(state: tuple[Any, Data]) -> Solution:
    estimator, data = state
    model = estimator(quantile=TAU, alpha=0).fit(data["X"], data["y"])
    return {"coef": model.coef_, "intercept": np.array([model.intercept_])}


def setup_statsmodels(data: Data) -> tuple[Any, Data]:
    from statsmodels.regression.quantile_regression import QuantReg

    return QuantReg, data


def fit_statsmodels(state: tuple[Any, Data], tol: float) -> Solution:
    import warnings

    estimator, data = state
    A = np.column_stack([np.ones(len(data["y"])), data["X"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = estimator(data["y"], A).fit(q=TAU, p_tol=tol, max_iter=5000).params
    return {"coef": params[1:], "intercept": params[:1]}


TASK = Task(
    name="quantile",
    title="Median regression, 50,000 x 20",
    description="""\
Normal columns, t-distributed noise whose spread depends on the first of them, no penalty. At equal quality the mean
loss is within 1e-7 of the least that anybody finds, relative to it. epicycle and scikit-learn (HiGHS) are exact;
statsmodels iterates, with the loosest tolerance that is good enough. The times of epicycle and statsmodels include
standard errors.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", fit, setup=setup_epicycle),
        Implementation("epicycle", "epicycle", fit, setup=setup_epicycle),
        Implementation("scikit-learn", "peer", fit, setup=setup_scikit_learn),
        Implementation(
            "statsmodels", "peer", fit_statsmodels, setup=setup_statsmodels, tolerances=(1e-4, 1e-5, 1e-6, 1e-8)
        ),
    ),
    quality=losses,
    tolerance=1e-7,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=5),),
)
