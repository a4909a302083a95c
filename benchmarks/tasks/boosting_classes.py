"""Boosted trees for seven classes on a table like Covertype: ten measurements and two sets of indicator columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Target, Task
from benchmarks.tasks._boosting import TOLERANCE, contestants, quality, surface

ROUNDS, LEAVES = 30, 63


def make(directory: Path, quick: bool) -> Data:
    n, held = (10_000, 4_000) if quick else (500_000, 80_000)
    rng = np.random.default_rng(13)
    X = np.zeros((n + held, 54))
    X[:, :10] = np.round(100 * rng.standard_normal((n + held, 10)))
    area, soil = rng.integers(0, 4, n + held), np.minimum(rng.geometric(0.08, n + held), 40) - 1
    X[np.arange(n + held), 10 + area] = 1
    X[np.arange(n + held), 14 + soil] = 1
    effects = rng.standard_normal((44, 7))
    scores = effects[area] + effects[4 + soil] + rng.gumbel(size=(n + held, 7))
    scores += np.outer(surface(X[:, :10] / 100), np.linspace(-1, 1, 7))
    y = scores.argmax(axis=1).astype(np.int64)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


TASK = Task(
    name="boosting_classes",
    title="GradientBoostingClassifier, 500,000 x 54, seven classes, 30 rounds of 63 leaves",
    description="""\
Ten rounded normal features and indicators of 4 and of 40 levels; the class is the largest of seven scores with noise.
Settings as in boosting_binary. At equal quality the held-out log-loss is at most 1% above
LightGBM's.""",
    make=make,
    implementations=contestants(ROUNDS, LEAVES),
    quality=quality,
    tolerance=TOLERANCE,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=600.0,
)
