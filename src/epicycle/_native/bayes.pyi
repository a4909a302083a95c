"""Kernels: sums and moments of the rows of each class, and the scores of classes."""

from typing import Any

import numpy as np

Array = np.ndarray

def class_sums(X: Any, code: Array, weight: Array | None, n_classes: int, threads: int) -> Array: ...
def class_moments(X: Array, code: Array, weight: Array | None, n_classes: int) -> tuple[Array, Array, Array]: ...
def normal_scores(X: Array, mean: Array, precision: Array, log_norm: Array) -> Array: ...
