"""Common parts of the logistic tasks: correlated features of unequal scale, the objective, and the implementations.

    F(W, b) = C sum_i log(1 + sum_{k != y_i} exp(m_ik - m_iy_i)) + ||W||^2 / 2,    m_i = W x_i + b,    C = 1

The intercept is not penalised; two classes have one row of W, more have one row each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Quality, Solution
from benchmarks.tasks._linear import blocks

CORRELATION = 0.5
MEASURE = "objective excess"


def features(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Rows N(m, D A D): A the AR(1) correlation 0.5^|j-k|, standard deviations from 1/3 to 3, means within +-1."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    X *= rng.permutation(np.geomspace(1 / 3, 3, p))
    X += rng.uniform(-1.0, 1.0, p)
    return X


def labels(rng: np.random.Generator, X: np.ndarray, n_classes: int, signal: float) -> np.ndarray:
    """Labels drawn from a multinomial logit whose margins have standard deviation `signal`."""
    margins = X @ rng.standard_normal((X.shape[1], n_classes)) / X.std(axis=0).mean()
    margins *= signal / margins.std(axis=0)
    margins -= margins.mean(axis=0)
    drawn: np.ndarray = (margins + rng.gumbel(size=margins.shape)).argmax(axis=1)
    return drawn


def objective(data: Data, solution: Solution) -> np.longdouble:
    """F in extended precision, relative to the number of rows."""
    X, y = data["X"], data["y"]
    W, b = solution["coef"].astype(np.longdouble), solution["intercept"].astype(np.longdouble)
    if len(W) == 1:  # two classes with one row: the margins of the other are zero
        W, b = np.vstack([0 * W, W]), np.append(0 * b, b)
    total = np.longdouble((solution["coef"].astype(np.longdouble) ** 2).sum() / 2)
    for rows in blocks(len(y)):
        margins = X[rows].astype(np.longdouble) @ W.T + b
        own = np.take_along_axis(margins, y[rows, None], axis=1)
        total += np.log(np.exp(margins - own).sum(axis=1)).sum()
    return total / len(y)


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Relative distance of each objective from the best that anybody found."""
    values = {name: objective(data, s) for name, s in solutions.items()}
    best = min(values.values())
    return {name: {MEASURE: float(value / best - 1)} for name, value in values.items()}


def sklearn_fit(solver: str) -> Callable[[Data, float], Solution]:
    def run(data: Data, tol: float) -> Solution:
        from sklearn.linear_model import LogisticRegression

        return as_solution(LogisticRegression(solver=solver, tol=tol, max_iter=100_000).fit(data["X"], data["y"]))

    return run


def intelex_fit(solver: str) -> Callable[[Data, float], Solution]:
    def run(data: Data, tol: float) -> Solution:
        from sklearnex.linear_model import LogisticRegression

        return as_solution(LogisticRegression(solver=solver, tol=tol, max_iter=100_000).fit(data["X"], data["y"]))

    return run


def epicycle_fit(data: Data, tol: float) -> Solution:
    from epicycle import LogisticRegression

    return as_solution(LogisticRegression(tol=tol).fit(data["X"], data["y"]))


def reference_fit(data: Data) -> Solution:
    return sklearn_fit("newton-cholesky")(data, 1e-12)


def as_solution(model: Any) -> Solution:
    return {"coef": np.atleast_2d(model.coef_), "intercept": np.ravel(model.intercept_)}


def ladder(loosest: float, tightest: float) -> tuple[float, ...]:
    """From `loosest` down to `tightest` in half decades: 1, 0.3, 0.1, 0.03, ..."""
    steps = (float(f"{digit}e{k}") for k in range(3, -15, -1) for digit in (3, 1))
    return tuple(tol for tol in steps if loosest >= tol >= tightest)


REFERENCE = Implementation("reference", "reference", reference_fit)
