"""Logistic regression learnt from a sparse stream, batch after batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Quality, Solution, Target, Task

BATCH = 1000
ALPHA, STEP = 1e-8, 1.0
#: Entries of a row, before those of the same column are merged.
STORED = 50


def make(directory: Path, quick: bool) -> Data:
    n, held, p = (20_000, 4_000, 10_000) if quick else (1_000_000, 50_000, 100_000)
    rng = np.random.default_rng(13)
    # Columns as in text: a few common, most rare. Duplicates in a row are merged, which leaves about fifty entries.
    columns = np.minimum((p * rng.random((n + held, STORED), dtype=np.float32) ** 3).astype(np.int32), p - 1)
    columns.sort(axis=1)
    values = rng.random(columns.size) + 0.5
    X = sp.csr_matrix((values, columns.ravel(), np.arange(n + held + 1, dtype=np.int32) * STORED), shape=(n + held, p))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    z = 4.0 * (X @ rng.standard_normal(p))
    y = (z + rng.logistic(size=n + held) > 0).astype(np.int64)
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": y, "shape": np.array([n, held, p])}


def _matrix(data: Data) -> Any:
    n, held, p = (int(k) for k in data["shape"])
    X = sp.csr_matrix((n + held, p))
    X.data, X.indices, X.indptr = data["data"], data["indices"], data["indptr"]
    X.has_canonical_format = True
    return X


def batches(data: Data) -> tuple[list[tuple[Any, np.ndarray]], int]:
    """The stream, cut into batches before the clock starts."""
    X, (n, _, p) = _matrix(data), data["shape"]
    return [(X[i : i + BATCH], data["y"][i : i + BATCH]) for i in range(0, int(n), BATCH)], int(p)


def ready(estimator: Callable[[], Any]) -> Callable[[Data], Any]:
    def setup(data: Data) -> Any:
        stream, _ = batches(data)
        estimator().partial_fit(*stream[0], classes=[0, 1])  # what is loaded on first use has been loaded
        return estimator, stream

    return setup


def learn(state: Any) -> Solution:
    estimator, stream = state
    model = estimator()
    for X, y in stream:
        model.partial_fit(X, y, classes=[0, 1])
    return {"coef": np.ravel(model.coef_), "intercept": np.ravel(model.intercept_)}


def _epicycle() -> Any:
    from epicycle import SGDClassifier

    return SGDClassifier("log_loss", alpha=ALPHA, learning_rate="constant", eta0=STEP)


def _scikit_learn() -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss", alpha=ALPHA, learning_rate="constant", eta0=STEP, shuffle=False)


def _river(data: Data) -> Any:
    import river.linear_model  # noqa: F401

    return batches(data)


def learn_dictionaries(state: Any) -> Measured:
    """river takes a dictionary for each row; making those is not on the clock."""
    from river import linear_model, optim

    stream, p = state
    # River's penalty touches the features of the row alone.
    model = linear_model.LogisticRegression(optim.SGD(STEP), l2=ALPHA, intercept_lr=0.01 * STEP)
    seconds = 0.0
    for X, y in stream:
        rows = [
            dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
            for a, b in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
        ]
        labels = y.astype(bool).tolist()
        began = time.perf_counter()
        for row, label in zip(rows, labels, strict=True):
            model.learn_one(row, label)
        seconds += time.perf_counter() - began
    coef = np.zeros(p)
    for column, weight in model.weights.items():
        coef[column] = weight
    return Measured(seconds, {"coef": coef, "intercept": np.array([model.intercept])})


def held_out_log_loss(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Log-loss on rows that nobody saw, above the best of all."""
    X, n = _matrix(data), int(data["shape"][0])
    held, sign = X[n:], np.where(data["y"][n:] > 0, 1.0, -1.0)
    losses = {
        name: float(np.logaddexp(0.0, -sign * (held @ s["coef"] + s["intercept"][0])).mean())
        for name, s in solutions.items()
    }
    return {
        name: {"log-loss above the best": loss - min(losses.values()), "held-out log-loss": loss}
        for name, loss in losses.items()
    }


TASK = Task(
    name="sgd_stream",
    title="Logistic regression from a sparse stream, 1,000,000 x 100,000, about 50 entries a row, batches of 1,000",
    description="""\
One pass over CSR batches by partial_fit, L2 penalty 1e-8, steps of length one on rows of unit length (a hundredth for
the intercept), the same order for all. The batches are made before the clock starts, and river's dictionaries are not
counted. At equal quality the log-loss on 50,000 further rows is within 0.005 of the best.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", learn, setup=ready(_epicycle)),
        Implementation("scikit-learn", "peer", learn, setup=ready(_scikit_learn)),
        Implementation("river", "peer", learn_dictionaries, setup=_river),
    ),
    quality=held_out_log_loss,
    tolerance=0.005,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.2),),
    cap=600.0,
)
