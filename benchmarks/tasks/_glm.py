"""Common parts of the tasks of generalized linear models: features, the objective, and the implementations.

    F(w, b) = 1 / (2 n) sum_i d(y_i, exp(b + w'x_i)) + alpha / 2 |w|^2

with the unit deviance d of a Tweedie family of power 1 (Poisson), 2 (gamma) or between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._linear import blocks
from benchmarks.tasks._logistic import features, ladder

ALPHA = 1e-3
MEASURE = "objective excess"


def rows(power: float, seed: int, quick: bool) -> Data:
    """Correlated features, and responses drawn from the family with a log link."""
    n, p = (20_000, 20) if quick else (500_000, 40)
    rng = np.random.default_rng(seed)
    X = features(rng, n, p)
    eta = X @ rng.standard_normal(p)
    mu = np.exp((eta - eta.mean()) / eta.std() * 0.5)
    if power == 1:
        y = rng.poisson(mu).astype(np.float64)
    elif power == 2:
        y = rng.gamma(2.0, mu / 2)
    else:
        counts = rng.poisson(mu ** (2 - power) / (2 - power))
        sizes = rng.gamma(np.maximum(counts, 1) * (2 - power) / (power - 1), (power - 1) * mu ** (power - 1))
        y = np.where(counts > 0, sizes, 0.0)
    return {"X": X, "y": y}


def objective(data: Data, solution: Solution, power: float) -> np.longdouble:
    """F in extended precision, up to the term of y alone."""
    X, y = data["X"], data["y"]
    w, b = solution["coef"].astype(np.longdouble), np.longdouble(solution["intercept"][0])
    total = np.longdouble(0)
    for rows in blocks(len(y)):
        eta, t = X[rows].astype(np.longdouble) @ w + b, y[rows].astype(np.longdouble)
        if power == 1:
            total += (np.exp(eta) - t * eta).sum()
        elif power == 2:
            total += (t * np.exp(-eta) + eta).sum()
        else:
            total += (t * np.exp((1 - power) * eta) / (power - 1) + np.exp((2 - power) * eta) / (2 - power)).sum()
    return total / len(y) + ALPHA / 2 * (w @ w)


def quality(power: float) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """Distance of each objective from the best that anybody found."""

    def measure(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        values = {name: objective(data, s, power) for name, s in solutions.items()}
        best = min(values.values())
        return {name: {MEASURE: float((value - best) / abs(best))} for name, value in values.items()}

    return measure


def as_solution(model: Any) -> Solution:
    return {"coef": np.ravel(model.coef_), "intercept": np.atleast_1d(np.float64(model.intercept_))}


def epicycle_fit(power: float) -> Callable[[Data, float], Solution]:
    def run(data: Data, tol: float) -> Solution:
        from epicycle import GeneralizedLinearModel
        from epicycle.linear import families

        family = {1.0: "poisson", 2.0: "gamma"}.get(power, families.Tweedie(power))
        return as_solution(GeneralizedLinearModel(family, alpha=ALPHA, tol=tol).fit(data["X"], data["y"]))

    return run


def sklearn_fit(power: float, solver: str) -> Callable[[Data, float], Solution]:
    def run(data: Data, tol: float) -> Solution:
        from sklearn.linear_model import TweedieRegressor

        model = TweedieRegressor(power=power, link="log", alpha=ALPHA, solver=solver, tol=tol, max_iter=10_000)
        return as_solution(model.fit(data["X"], data["y"]))

    return run


def glum_fit(power: float) -> Callable[[Data, float], Solution]:
    def run(data: Data, tol: float) -> Solution:
        from glum import GeneralizedLinearRegressor, TweedieDistribution

        family = {1.0: "poisson", 2.0: "gamma"}.get(power, TweedieDistribution(power))
        model = GeneralizedLinearRegressor(
            family=family, link="log", alpha=ALPHA, l1_ratio=0.0, gradient_tol=tol, max_iter=1000
        )
        return as_solution(model.fit(data["X"], data["y"]))

    return run


def statsmodels_fit(power: float) -> Callable[[Data], Solution]:
    """Without a penalty, which it has only by coordinate descent: its time is shown, its objective is another one."""

    def run(data: Data) -> Solution:
        import statsmodels.api as sm

        link = sm.families.links.Log()
        family = {1.0: sm.families.Poisson(link), 2.0: sm.families.Gamma(link)}.get(
            power, sm.families.Tweedie(link, var_power=power)
        )
        params = sm.GLM(data["y"], sm.add_constant(data["X"]), family=family).fit().params
        return {"coef": params[1:], "intercept": params[:1]}

    return run


def task(power: float, name: str, title: str, make: Callable[[Path, bool], Data]) -> Task:
    """The task of one family; `make` is of the module that the task is in, where its processes look for it."""

    def reference(data: Data) -> Solution:
        return sklearn_fit(power, "newton-cholesky")(data, 1e-12)

    return Task(
        name=name,
        title=title,
        description="""\
Normal features with AR(1) correlation 0.5, standard deviations from 1/3 to 3 and means within +-1; responses drawn from
the model; alpha = 0.001. At equal quality the objective is within a relative 1e-8 of the best that anybody found.
statsmodels fits without the penalty, and competes with nobody.""",
        make=make,
        implementations=(
            Implementation("reference", "reference", reference),
            Implementation(
                "scikit-learn newton-cholesky",
                "peer",
                sklearn_fit(power, "newton-cholesky"),
                tolerances=ladder(0.1, 1e-10),
            ),
            Implementation("scikit-learn lbfgs", "peer", sklearn_fit(power, "lbfgs"), tolerances=ladder(1e-3, 1e-10)),
            Implementation("glum", "peer", glum_fit(power), tolerances=ladder(1e-2, 1e-10)),
            Implementation("statsmodels, no penalty", "baseline", statsmodels_fit(power)),
            Implementation("epicycle", "epicycle", epicycle_fit(power), tolerances=ladder(0.1, 1e-12)),
        ),
        quality=quality(power),
        tolerance=1e-8,
        targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
    )
