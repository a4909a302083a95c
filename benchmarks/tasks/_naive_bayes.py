"""Common parts of the tasks of naive Bayes: the model of a library, and the errors of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Quality, Solution

MEASURE = "largest error of a log-probability or standardised mean, relative"


def model(library: str, name: str) -> Any:
    if library == "epicycle":
        import epicycle as package
    else:
        from sklearn import naive_bayes as package
    return getattr(package, name)


def against(reference: Callable[[Data], np.ndarray]) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """Parameters of every solution against those of the formula, computed apart."""

    def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        expected = reference(data)
        scale = np.maximum(np.abs(expected), 1.0)
        return {
            name: {MEASURE: float(np.max(np.abs(s["parameters"] - expected) / scale))} for name, s in solutions.items()
        }

    return quality
