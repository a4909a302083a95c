"""Real and drawn rows as two matrices of features, in which they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.data._matrix import as_matrix
from epicycle.generative._row_form import is_images
from epicycle.nets.vision import ConvNetClassifier
from epicycle.nets.vision._images import as_images

FEATURE_DOCS: dict[str, str] = {
    "real": "real : array, data frame or images\n    Real rows, which the model was best not fitted to.",
    "drawn": "drawn : array, data frame or images\n    Rows that a model has drawn, in the same form.",
    "features": "features : callable or ConvNetClassifier, optional\n"
    "    (rows) -> matrix of features in which rows are compared; of a fitted classifier of images the units before "
    "its\n    last layer. By default rows are compared as they are.",
    "n_neighbors": "n_neighbors : int, default={default}\n    k, the neighbour that a ball around a row reaches to.",
}


def feature_pair(real: Any, drawn: Any, features: Any, function: str) -> tuple[np.ndarray, np.ndarray]:
    """Both as matrices (n, p) of float64, with at least two rows each and as many columns."""
    found = []
    for name, rows in (("real", real), ("drawn", drawn)):
        matrix = _matrix(rows, features, f"{function}({name})")
        if len(matrix) < 2:
            raise DataError(f"{name}: has {len(matrix)} row; expected at least 2")
        found.append(matrix)
    if found[0].shape[1] != found[1].shape[1]:
        raise DataError(
            f"drawn: has {found[1].shape[1]} features, the real rows have {found[0].shape[1]}; expected as many"
        )
    return found[0], found[1]


def _matrix(rows: Any, features: Any, name: str) -> np.ndarray:
    if isinstance(features, ConvNetClassifier):
        rows = features.activations(rows, len(features.module_) - 2)
    elif callable(features):
        rows = features(rows)
    elif features is not None:
        raise ParameterTypeError(
            f"features={features!r}; expected a function of rows, a fitted ConvNetClassifier, or None"
        )
    if is_images(rows):
        images = as_images(rows, name)
        return images.reshape(len(images), -1).astype(np.float64)
    matrix, _ = as_matrix(rows, estimator_name=name)
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)


def standardised(real: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """All in units of the standard deviations of the real rows; columns that are constant there keep theirs."""
    mean, deviation = real.mean(axis=0), real.std(axis=0)
    deviation = np.where(deviation <= 1e-12 * np.abs(mean), 1.0, deviation)
    return tuple((rows - mean) / deviation for rows in (real, *others))
