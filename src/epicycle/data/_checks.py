"""The checks of X and y that an estimator asks for, wherever the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.data._data import Matrix
from epicycle.data._matrix import as_matrix
from epicycle.data._target import TargetKind, as_labels, as_numeric_target


@dataclass(frozen=True)
class Checks:
    """The arguments of :func:`~epicycle.data.as_data` that say what X and y have to be."""

    target: TargetKind
    multi_output: bool
    estimator_name: str
    accept_sparse: bool
    check_finite: bool

    def matrix(self, X: Any) -> tuple[Matrix, tuple[str, ...] | None]:
        name, sparse, finite = self.estimator_name, self.accept_sparse, self.check_finite
        return as_matrix(X, estimator_name=name, accept_sparse=sparse, check_finite=finite)

    def targets(self, y: Any, n: int) -> np.ndarray | None:
        if self.target == "numeric":
            return as_numeric_target(y, n, multi_output=self.multi_output, estimator_name=self.estimator_name)
        return as_labels(y, n, estimator_name=self.estimator_name) if self.target == "labels" else None
