"""A smoother: points with weights, a kernel and a rule for the bandwidth; evaluated anywhere, wherever the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.data import ArrayData, Batch, Data
from epicycle.linear.local._distances import in_coordinates
from epicycle.linear.local._smoothing import Answers, Points, smooth

__all__ = ["Smoother", "predict_rows"]


@dataclass(frozen=True)
class Smoother:
    """What prediction needs.

    root : the Cholesky factor of the metric, or None.
    targets, weights : of shape (n, k), column by column; weights include those of robust iterations.
    bandwidth : the distance h, or None where `span` decides.
    """

    points: Points
    root: np.ndarray | None
    targets: np.ndarray
    weights: np.ndarray
    bandwidth: float | None
    span: float
    kernel: str
    degree: int

    def radii(self, queries: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """The bandwidth at every query."""
        if self.bandwidth is not None:
            return np.full(len(queries), self.bandwidth)
        return self.points.radii(queries, self.span, n_jobs)

    def at(
        self, queries: np.ndarray, h: np.ndarray, target: int, *, squares: bool = False, n_jobs: int | None = None
    ) -> Answers:
        """The fit of one target at queries in the coordinates of the metric."""
        return smooth(
            self.points, self.targets[:, target], self.weights[:, target], queries, h,
            kernel=self.kernel, degree=self.degree, squares=squares, n_jobs=n_jobs,
        )  # fmt: skip

    def values(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """The fit of all targets at rows of X: shape (n, k), in float64."""
        queries = in_coordinates(X, self.root)
        h = self.radii(queries, n_jobs)
        return np.column_stack(
            [self.at(queries, h, t, n_jobs=n_jobs).value for t in range(self.targets.shape[1])],
        )


def predict_batch(batch: Batch, smoother: Smoother) -> np.ndarray:
    return smoother.values(np.asarray(batch.X), 1).astype(batch.X.dtype)


def predict_rows(data: Data, smoother: Smoother, n_jobs: int | None) -> Any:
    """The fit at all rows. In memory the threads share the queries, elsewhere the batches."""
    if isinstance(data, ArrayData):
        return smoother.values(np.asarray(data.X), n_jobs).astype(data.dtype)
    return engine.map(predict_batch, data, smoother, n_jobs=n_jobs)
