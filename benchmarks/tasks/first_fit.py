"""The first fit of a process against its tenth: nothing is compiled or tuned on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import ratio
from benchmarks.task import Data, Implementation, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((10_000 if quick else 100_000, 50))
    y = X @ rng.standard_normal(50) + rng.standard_normal(len(X))
    return {"X": X, "y": y, "label": (y > 0).astype(np.int64)}


@dataclass
class Ready:
    """An estimator class, already imported, and its data."""

    estimator: type[Any]
    X: np.ndarray
    y: np.ndarray


def fit(ready: Ready) -> Solution:
    return {"coef": ready.estimator().fit(ready.X, ready.y).coef_}


def after(fits: int, estimator: str) -> Callable[[Data], Ready]:
    """Import the estimator and fit it so many times before the clock starts."""

    def setup(data: Data) -> Ready:
        import epicycle

        y = data["label"] if estimator == "LogisticRegression" else data["y"]
        ready = Ready(getattr(epicycle, estimator), data["X"], y)
        for _ in range(fits):
            fit(ready)
        return ready

    return setup


ESTIMATORS = ("LinearRegression", "LogisticRegression")

TASK = Task(
    name="first_fit",
    title="the first fit of a process and its tenth, 100,000 x 50",
    description="""\
Every call has a process of its own, in which the estimator was imported and fitted zero or nine times before.""",
    make=make,
    implementations=tuple(
        Implementation(f"{estimator}, {which} fit", "epicycle", fit, setup=after(fits, estimator), fresh=True)
        for estimator in ESTIMATORS
        for which, fits in (("first", 0), ("tenth", 9))
    ),
    targets=tuple(
        Target(
            f"{e}: first fit over tenth, level to within 25 %",
            ratio(f"{e}, first fit", f"{e}, tenth fit"),
            at_most=1.25,
        )
        for e in ESTIMATORS
    ),
)
