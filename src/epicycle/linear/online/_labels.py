"""Classes of a stream: one model for each, and new ones at any time.

One against the rest, a class that has not been seen yet has a model too: the one that learnt every row as "not mine".
It is the same for all such classes, so one spare model, kept up with the others, stands for every class to come. A
class that appears takes a copy of it, and from then on is what it would have been if it had been named at the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.data._target import as_labels
from epicycle.stats._labels import distinct

__all__ = ["codes_of", "declared_classes", "grown", "positive_codes"]


def declared_classes(classes: Any, estimator_name: str) -> np.ndarray:
    """The classes that a caller names, sorted."""
    named = as_labels(np.asarray(classes), len(classes), estimator_name=estimator_name)
    found = distinct(named)
    if len(found) < 2:
        raise DataError(f"classes: {estimator_name} needs at least 2 classes, got {found.tolist()}")
    return found


def codes_of(y: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, bool]:
    """The position of every label among `classes` as float64, and whether all of them are there."""
    if y.dtype.kind in "biuf" and classes.dtype.kind in "biuf" and len(classes) == 2:
        last = y == classes[1]
        return last.astype(np.float64), bool((last | (y == classes[0])).all())
    found = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return found.astype(np.float64), bool((classes[found] == y).all())


def positive_codes(n_classes: int, *, spare: bool) -> np.ndarray:
    """For each model the code that is +1 for it; the spare model's is none."""
    if spare:
        return np.append(np.arange(n_classes, dtype=np.float64), -1.0)
    return np.array([1.0]) if n_classes == 2 else np.arange(n_classes, dtype=np.float64)


def grown(known: np.ndarray, classes: np.ndarray) -> list[int]:
    """For `classes` and the spare model, which model of `known` and its spare each of them is a copy of."""
    spare = len(known)
    old = {label: k for k, label in enumerate(known.tolist())}
    return [*(old.get(label, spare) for label in classes.tolist()), spare]
