"""Factors of users and items: explicit ratings, implicit feedback, rounds against epochs of stochastic gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import ratio, speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Quality, Solution, Target, Task

ROUNDS, FACTORS = 10, 32
EXCESS = "RMSE above that of scikit-surprise"
OBJECTIVE = "objective, share above the least"


def ratings(n: int, m: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratings of 0.5 to 5 by ten hidden factors; a few users and items have most of them."""
    rng = np.random.default_rng(seed)
    drawn = int(1.5 * size)
    user = np.minimum((rng.exponential(0.3, drawn) * n).astype(np.int64), n - 1)
    item = np.minimum((rng.exponential(0.2, drawn) * m).astype(np.int64), m - 1)
    key = np.unique(user * m + item)
    key = rng.permutation(key)[:size]
    user, item = key // m, key % m
    x, y = rng.normal(size=(n, 10)), rng.normal(size=(m, 10))
    value = 3.5 + 0.4 * rng.normal(size=n)[user] + 0.5 * rng.normal(size=m)[item] + 0.8 * rng.normal(size=len(key))
    value += 0.15 * np.einsum("ij,ij->i", x[user], y[item])
    return user, item, np.clip(np.round(2 * value) / 2, 0.5, 5)


def matrix(data: Data) -> Any:
    shape = (len(data["indptr"]) - 1, int(data["items"]))
    return sp.csr_matrix((data["data"], data["indices"], data["indptr"]), shape=shape)


def _stored(X: Any) -> Data:
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "items": np.array(X.shape[1])}


# ------------------------------------------------------------------------------------------------ explicit ratings


def make_explicit(directory: Path, quick: bool) -> Data:
    n, m, size = (2_000, 1_000, 60_000) if quick else (70_000, 10_000, 10_000_000)
    user, item, value = ratings(n, m, size, 3)
    return _stored(sp.csr_matrix((value, (user, item)), shape=(n, m)))


def rounds_of_epicycle(**options: Any) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        from epicycle.recommend import CollaborativeFiltering

        shared = {"n_factors": FACTORS, "max_iter": ROUNDS, "tol": 1e-12, "random_state": 0}
        return CollaborativeFiltering(**shared, **options), matrix(data)

    return prepare


def fit_epicycle(ready: tuple[Any, Any]) -> Solution:
    import epicycle as ep

    model, X = ready
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X)
    return {"users": model.user_factors_, "items": model.item_factors_}


def implicit_als(scale: float, regularization: float) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        from implicit.als import AlternatingLeastSquares
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, "blas")  # it asks for this itself
        X = matrix(data).astype(np.float32)
        X.data = 1 + scale * X.data
        options = {"factors": FACTORS, "iterations": ROUNDS, "regularization": regularization, "random_state": 0}
        return AlternatingLeastSquares(**options, num_threads=0), X

    return prepare


def fit_implicit(ready: tuple[Any, Any]) -> Solution:
    model, X = ready
    model.fit(X, show_progress=False)
    return {"users": model.user_factors, "items": model.item_factors}


EXPLICIT = Task(
    name="als_explicit",
    title="CollaborativeFiltering, 10 million ratings, 32 factors, ten rounds",
    description="""\
70,000 users and 10,000 items. epicycle solves every half-step of the explicit problem exactly, with biases, in double
precision; implicit (its default: three conjugate gradients in single precision) solves another problem, that of
implicit feedback, and is here for the time that as many rounds take.""",
    make=make_explicit,
    implementations=(
        Implementation("epicycle", "epicycle", fit_epicycle, setup=rounds_of_epicycle(reg=0.05)),
        Implementation("implicit", "baseline", fit_implicit, setup=implicit_als(0.0, 0.01)),
    ),
    targets=(Target("time of implicit over that of epicycle", ratio("implicit", "epicycle"), at_least=1.0),),
)


# ------------------------------------------------------------------------------------------------ implicit feedback


def make_implicit(directory: Path, quick: bool) -> Data:
    n, m, size = (2_000, 1_000, 60_000) if quick else (20_000, 10_000, 2_000_000)
    user, item, _ = ratings(n, m, size, 4)
    count = np.random.default_rng(5).poisson(1.0, len(user)) + 1.0
    return _stored(sp.csr_matrix((count, (user, item)), shape=(n, m)))


def objective(data: Data, solution: Solution) -> float:
    """F for confidences 1 + 2 r and penalty 5, as all of them minimise it."""
    X = matrix(data)
    x, y = solution["users"].astype(np.float64), solution["items"].astype(np.float64)
    user, item = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices
    s, c = np.einsum("ij,ij->i", x[user], y[item]), 1 + 2.0 * X.data
    listed = np.sum(c * (1 - s) ** 2 - s**2)
    return float(np.sum((x.T @ x) * (y.T @ y)) + listed + 5.0 * (np.sum(x**2) + np.sum(y**2))) / 2


def excess(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    found = {name: objective(data, solution) for name, solution in solutions.items()}
    least = min(found.values())
    return {name: {OBJECTIVE: value / least - 1} for name, value in found.items()}


IMPLICIT = Task(
    name="als_implicit",
    title="CollaborativeFiltering of implicit feedback, 2 million pairs, 32 factors, ten rounds",
    description="""\
20,000 users and 10,000 items, the same objective; it may be 1% above the least. Each with its default solver: epicycle
solves every half-step by Cholesky's factor in double precision, implicit takes three conjugate gradients in single.""",
    make=make_implicit,
    implementations=(
        Implementation(
            "epicycle", "epicycle", fit_epicycle, setup=rounds_of_epicycle(method="implicit", alpha=2.0, reg=5.0)
        ),
        Implementation(
            "epicycle, conjugate gradients",
            "baseline",
            fit_epicycle,
            setup=rounds_of_epicycle(method="implicit", solver="cg", alpha=2.0, reg=5.0),
        ),
        Implementation("implicit", "peer", fit_implicit, setup=implicit_als(2.0, 5.0)),
    ),
    quality=excess,
    tolerance=1e-2,
    targets=(Target("speed against implicit", speedup_over_best_peer(), at_least=1.0),),
)


# ------------------------------------------------------------------------------------------------ against surprise


def make_rated(directory: Path, quick: bool) -> Data:
    n, m, size = (600, 400, 20_000) if quick else (6_000, 4_000, 1_000_000)
    user, item, value = ratings(n, m, size, 6)
    test = np.random.default_rng(7).random(len(user)) < 0.1
    return {"pairs": np.column_stack([user, item]), "value": value, "test": test}


def setup_rated(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        pairs, value, train = data["pairs"], data["value"], ~data["test"]
        if library == "epicycle":
            from epicycle.recommend import CollaborativeFiltering

            return CollaborativeFiltering(n_factors=20, reg=0.05, tol=1e-2, random_state=0), data
        import pandas as pd
        from surprise import SVD, Dataset, Reader

        table = pd.DataFrame({"user": pairs[train, 0], "item": pairs[train, 1], "rating": value[train]})
        rated = Dataset.load_from_df(table, Reader(rating_scale=(0.5, 5))).build_full_trainset()
        return SVD(n_factors=20, n_epochs=20, random_state=0), rated, data

    return prepare


def rounds_rated(ready: tuple[Any, Any]) -> Measured:
    model, data = ready
    pairs, train = data["pairs"], ~data["test"]
    model.fit(pairs[train], data["value"][train])
    seconds = np.diff(model.history_["seconds"])  # of the rounds; the first one is not counted, it follows the start
    return Measured(float(seconds.mean()), {"predicted": model.predict(pairs[~train])})


def epochs_rated(ready: tuple[Any, Any, Any]) -> Measured:
    from time import perf_counter

    model, rated, data = ready
    began = perf_counter()
    model.fit(rated)
    seconds = (perf_counter() - began) / model.n_epochs
    found = [model.predict(u, i).est for u, i in data["pairs"][data["test"]].tolist()]
    return Measured(seconds, {"predicted": np.array(found)})


def errors(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    value = data["value"][data["test"]]
    found = {name: float(np.sqrt(np.mean((s["predicted"] - value) ** 2))) for name, s in solutions.items()}
    base = found.get("scikit-surprise", min(found.values()))
    return {name: {EXCESS: rmse - base, "RMSE": rmse} for name, rmse in found.items()}


RATED = Task(
    name="als_rounds",
    title="One round over 1 million ratings, 20 factors: alternating least squares and stochastic gradients",
    description="""\
6,000 users and 4,000 items; nine tenths are learnt from. The time is that of a round in the fit of epicycle, and of an
epoch in that of scikit-surprise (20 of them), without what comes before the first. The error on the other tenth may not
be larger than that of scikit-surprise.""",
    make=make_rated,
    implementations=(
        Implementation("epicycle", "epicycle", rounds_rated, setup=setup_rated("epicycle")),
        Implementation("scikit-surprise", "peer", epochs_rated, setup=setup_rated("scikit-surprise")),
    ),
    quality=errors,
    tolerance=0.0,
    targets=(Target("speed of a round against an epoch", speedup_over_best_peer(), at_least=20.0),),
    memory=False,
)
