"""Scores of classes: the class that they choose, and the probabilities that they stand for.

Scores have one column for two classes (positive favours the second), K columns for K classes.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax


def choose_class(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of every row: by the sign of a single column, else the first of the largest score."""
    if len(classes) == 1:
        return np.repeat(classes, len(scores))
    return np.asarray(classes[(scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)])


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """log P of every class: exact also where P underflows."""
    if scores.shape[1] == 1:
        z = scores[:, 0]
        return np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
    scores = scores - scores.max(axis=1, keepdims=True)  # the largest exponent is 0: no overflow
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))


def probabilities(scores: np.ndarray) -> np.ndarray:
    """P of every class: the logistic function of a single column, the softmax of several."""
    if scores.shape[1] == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    return np.asarray(softmax(scores, axis=1))
