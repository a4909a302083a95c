"""Short programs in the manner of scikit-learn's user guide and examples, run with its classes and with ours.

Each takes a namespace `m` of model classes and returns a score, or several. All else (data, splits, pipelines,
searches, metrics, inspection) is scikit-learn's own in both runs. The tolerance is how far the scores of the two runs
may be apart: little where the answers are the same optimum, more where both draw random numbers of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets, model_selection as ms

Snippet = Callable[[Any], Any]
SNIPPETS: dict[str, tuple[Snippet, float]] = {}


def snippet(tolerance: float) -> Callable[[Snippet], Snippet]:
    """Enter a function into the list, with how far its scores may be apart."""

    def enter(function: Snippet) -> Snippet:
        SNIPPETS[function.__name__] = (function, tolerance)
        return function

    return enter


def halves(X: Any, y: Any, **options: Any) -> Any:
    return ms.train_test_split(X, y, random_state=0, **options)


IRIS = datasets.load_iris(return_X_y=True)
CANCER = datasets.load_breast_cancer(return_X_y=True)
DIABETES = datasets.load_diabetes(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
MOONS = datasets.make_moons(200, noise=0.25, random_state=0)
SENTENCES = [
    f"{who} {what} {when}"
    for who in ("the team", "our striker", "the goalkeeper", "the bank", "the fund", "the central bank")
    for what in ("won", "lost", "waited", "spoke", "rose", "fell")
    for when in ("today", "on monday", "after a long week")
]
TOPICS = np.array([int("bank" in words or "fund" in words) for words in SENTENCES])
