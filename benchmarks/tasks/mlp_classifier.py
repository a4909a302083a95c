"""Multi-layer perceptron on a table, at equal loss."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._nets import SEED, timed

LOSS = "loss on new rows, over the smallest"
SETTINGS = {"hidden_layer_sizes": (100,), "max_iter": 10, "tol": 0.0, "n_iter_no_change": 1000, "random_state": SEED}


def make(directory: Path, quick: bool) -> Data:
    n = 5_000 if quick else 100_000
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n + 5_000, 50)).astype(np.float32)
    hidden = np.tanh(X @ rng.normal(size=(50, 10)) / 4)
    y = (hidden @ rng.normal(size=(10, 5)) + 0.5 * rng.normal(size=(len(X), 5))).argmax(axis=1)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def epicycle(data: Data) -> Any:
    from epicycle import MLPClassifier, config

    with config(on_nonconvergence="ignore"):
        return MLPClassifier(**SETTINGS).fit(data["X"], data["y"])


def scikit_learn(data: Data) -> Any:
    import warnings

    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MLPClassifier(**SETTINGS).fit(data["X"], data["y"])


def log_shares(model: Any, data: Data) -> np.ndarray:
    return np.asarray(model.predict_log_proba(data["X_test"]))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """The mean loss of each on new rows, relative to the smallest: less 1."""
    rows = np.arange(len(data["y_test"]))
    losses = {name: float(-np.mean(s["scores"][rows, data["y_test"]])) for name, s in solutions.items()}
    least = min(losses.values())
    return {name: {LOSS: loss / least - 1} for name, loss in losses.items()}


TASK = Task(
    name="mlp_classifier",
    title="Perceptron 50-100-5 on 100,000 rows, ten epochs",
    description="""\
Adam with the defaults of scikit-learn (batches of 200, rate 0.001, alpha 0.0001), ten epochs in single precision. The
steps are the same in both; only the order of the rows and the start differ. At equal quality the mean loss on new rows
is within 2% of the smallest. The time is that of the fit, without imports.""",
    make=make,
    implementations=(
        Implementation("scikit-learn", "peer", timed(scikit_learn, log_shares)),
        Implementation("epicycle", "epicycle", timed(epicycle, log_shares)),
    ),
    quality=quality,
    tolerance=0.02,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
    cap=600.0,
)
