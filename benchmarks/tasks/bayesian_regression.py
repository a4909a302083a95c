"""Bayesian ridge regression of many rows, and automatic relevance determination of many columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "root mean square error of the coefficients, in standard errors of least squares"


def make(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(62)
    data = {}
    for kind, n, p in (("ridge", 200_000, 100), ("ard", 20_000, 300)):
        n, p = (n // 20, p // 4) if quick else (n, p)
        w = rng.standard_normal(p) * (rng.random(p) < 0.2)
        X = rng.standard_normal((n, p))
        data |= {f"X_{kind}": X, f"w_{kind}": w, f"y_{kind}": X @ w + rng.standard_normal(n)}
    return data


def setup(library: str, name: str, kind: str) -> Callable[[Data], Any]:
    def ready(data: Data) -> Any:
        if library == "epicycle":
            import epicycle as package
        else:
            from sklearn import linear_model as package
        return getattr(package, name)(), data[f"X_{kind}"], data[f"y_{kind}"]

    return ready


def fit(ready: tuple[Any, np.ndarray, np.ndarray]) -> Solution:
    model, X, y = ready
    return {"coef": model.fit(X, y).coef_}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    out = {}
    for name, solution in solutions.items():
        kind = "ard" if "ARD" in name else "ridge"
        error = np.mean((solution["coef"] - data[f"w_{kind}"]) ** 2) * len(data[f"y_{kind}"])
        out[name] = {MEASURE: float(np.sqrt(error))}
    return out


TASK = Task(
    name="bayesian_regression",
    title="BayesianRidge, 200,000 x 100, and ARDRegression, 20,000 x 300",
    description="""\
A fifth of the coefficients are not zero; noise of deviation one. Coefficients of equal quality lie within 1.2 standard
errors of least squares of those that made the data. scikit-learn ends when coefficients change by less than 0.001,
epicycle at a maximum of the evidence.""",
    make=make,
    implementations=tuple(
        Implementation(f"{library}, {name}", role, fit, setup=setup(library, name, kind))
        for library, role in (("epicycle", "epicycle"), ("scikit-learn", "peer"))
        for name, kind in (("BayesianRidge", "ridge"), ("ARDRegression", "ard"))
    ),
    quality=quality,
    tolerance=1.2,
    targets=tuple(
        Target(
            f"speed of {name} against scikit-learn",
            speedup_over_best_peer(f"epicycle, {name}", f"scikit-learn, {name}"),
            at_least=3.0,
        )
        for name in ("BayesianRidge", "ARDRegression")
    ),
)
