"""Logistic regression learnt from a sparse stream, batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

BATCH = 1000
ALPHA = 1e-6
#: Rows of the stream that river, which takes a dictionary for each, is given; its time is scaled up.
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

    return SGDClassifier("log_loss", alpha=ALPHA)


def _scikit_learn() -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss", alpha=ALPHA, shuffle=False)


def dictionaries(data: Data) -> Any:
    """Rows as river takes them, made before the clock starts."""
    from river import linear_model, optim

    X, (n, _, p) = _matrix(data), data["shape"]
    rows = [
        dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
        for a, b in zip(X.indptr[: int(n)].tolist(), X.indptr[1 : int(n) + 1].tolist(), strict=True)
    ]
    # The same steps 1 / (alpha (t0 + t)); river's penalty touches the features of the row alone.
    schedule = optim.schedulers.Optimal(loss=optim.losses.Log(), alpha=ALPHA)
    model = linear_model.LogisticRegression(optim.SGD(schedule), l2=ALPHA, intercept_lr=schedule)
    return model, rows, data["y"][: int(n)].astype(bool).tolist(), int(p)


def learn_dictionaries(state: Any) -> Solution:
    model, rows, labels, p = state
    for row, label in zip(rows, labels, strict=True):
        model.learn_one(row, label)
    coef = np.zeros(p)
    for column, weight in model.weights.items():
        coef[column] = weight
    return {"coef": coef, "intercept": np.array([model.intercept])}


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
One pass over CSR batches by partial_fit, L2 penalty 1e-6, steps 1 / (alpha (t0 + t)), all libraries in the same order; the
batches, and river's dictionaries, are made before the clock starts. Rows have unit length. At equal quality the log-loss on
50,000 further rows is within 0.005 of the best.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", learn, setup=ready(_epicycle)),
        Implementation("scikit-learn", "peer", learn, setup=ready(_scikit_learn)),
        Implementation("river", "peer", learn_dictionaries, setup=dictionaries),
    ),
    quality=held_out_log_loss,
    tolerance=0.005,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.2),),
    cap=600.0,
)
