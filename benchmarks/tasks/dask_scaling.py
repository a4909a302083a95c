"""Two single-threaded Dask workers against one, on data that is already there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import ratio
from benchmarks.task import Data, Implementation, Solution, Target, Task

N_CHUNKS = 32
ESTIMATORS = ("LinearRegression", "LogisticRegression")


def make(directory: Path, quick: bool) -> Data:
    """Only the shape: the rows are made by the workers, where they stay."""
    return {"shape": np.array([200_000, 20] if quick else [1_600_000, 100])}


def feature_chunk(number: int, rows: int, p: int) -> np.ndarray:
    return np.random.default_rng([0, number]).standard_normal((rows, p))


def target_chunk(X: np.ndarray, number: int, estimator: str) -> np.ndarray:
    """Targets for the rows of one chunk: a linear model with unit noise, or classes by a logit."""
    w = np.random.default_rng(7).standard_normal(X.shape[1]) / np.sqrt(X.shape[1])
    noise = np.random.default_rng([1, number])
    y: np.ndarray = X @ w + noise.standard_normal(len(X))
    if estimator == "LogisticRegression":
        y = (2 * X @ w + noise.logistic(size=len(X)) > 0).astype(np.int64)
    return y


@dataclass
class Cluster:
    """Workers, and the data that they hold."""

    estimator: type[Any]
    cluster: Any
    client: Any
    X: Any
    y: Any

    def close(self) -> None:
        self.client.close()
        self.cluster.close()


def start(n_workers: int, estimator: str) -> Callable[[Data], Cluster]:
    def setup(data: Data) -> Cluster:
        import dask.array as da
        from distributed import Client, LocalCluster, wait

        import epicycle

        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
        )
        client = Client(cluster)
        n, p = (int(size) for size in data["shape"])
        rows = n // N_CHUNKS
        client.wait_for_workers(n_workers)
        workers = list(client.scheduler_info(n_workers=n_workers)["workers"])
        features, targets = [], []
        for i in range(N_CHUNKS):  # dealt out evenly: placement is the business of whoever loads the data
            worker = workers[i % n_workers]
            features.append(client.submit(feature_chunk, i, rows, p, workers=[worker]))
            targets.append(client.submit(target_chunk, features[i], i, estimator, workers=[worker]))
        wait(features + targets)
        kind = np.int64 if estimator == "LogisticRegression" else np.float64
        X = da.concatenate([da.from_delayed(chunk, (rows, p), np.float64) for chunk in features])
        y = da.concatenate([da.from_delayed(chunk, (rows,), kind) for chunk in targets])
        X, y = client.persist([X, y])
        wait([X, y])
        return Cluster(getattr(epicycle, estimator), cluster, client, X, y)

    return setup


def fit(cluster: Cluster) -> Solution:
    return {"coef": np.ravel(cluster.estimator().fit(cluster.X, cluster.y).coef_)}


def name(estimator: str, n_workers: int) -> str:
    return f"{estimator}, {n_workers} worker{'s' * (n_workers > 1)}"


TASK = Task(
    name="dask_scaling",
    title="one Dask worker and two, 1,600,000 x 100",
    description=f"""\
A local cluster of worker processes with one thread each; {N_CHUNKS} chunks of rows, made by the workers, half by each,
and persisted before the clock starts.""",
    make=make,
    implementations=tuple(
        Implementation(name(e, k), "epicycle", fit, setup=start(k, e)) for e in ESTIMATORS for k in (1, 2)
    ),
    targets=tuple(
        Target(f"{e}: time of one worker over time of two", ratio(name(e, 1), name(e, 2)), at_least=1.6)
        for e in ESTIMATORS
    ),
    memory=False,
)
