"""Leave-one-out predictions: from one fit where the leverages give them, otherwise from a fit for every row.

For a linear smoother, y_hat = H y, that fits n - 1 rows as it would fit all of them with the left-out target replaced
by its own prediction, y_i - y_hat(-i) = (y_i - y_hat_i) / (1 - h_i) with the leverage h_i = H_ii.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.linear import LinearRegression, Ridge
from epicycle.select._fit_and_score import FoldResult, Task, fit_and_score, fitted, run_all
from epicycle.select._inputs import Rows, Split

__all__ = ["closed_form", "one_out_predictions", "one_out_splits"]

#: Beyond this leverage a row decides its own prediction, and the division loses all digits.
_MOST = 1 - 1e-8


def one_out_splits(n: int) -> list[Split]:
    every = np.arange(n)
    return [(np.delete(every, i), np.array([i])) for i in range(n)]


def closed_form(estimator: Any, rows: Rows) -> bool:
    """Whether one fit is enough: our least squares or ridge, on one numeric target."""
    # Exactly these classes: a subclass may fit in another way.
    return type(estimator) in (LinearRegression, Ridge) and rows.y.ndim == 1 and rows.y.dtype.kind in "biuf"


def one_out_predictions(estimator: Any, rows: Rows, n_jobs: int | None) -> np.ndarray:
    """What the model says about every row when fitted to all others."""
    model = fitted(estimator, rows)
    h = np.asarray(model.leverage(rows.X, rows.weight), dtype=np.float64)
    residual = rows.y - np.asarray(model.predict(rows.X), dtype=np.float64)
    free = h <= _MOST
    predictions = np.empty(rows.n)
    predictions[free] = rows.y[free] - residual[free] / (1 - h[free])
    decided = np.flatnonzero(~free)
    if len(decided):
        every = np.arange(rows.n)
        tasks = [Task("", estimator, int(i), (np.delete(every, i), np.array([i]))) for i in decided]

        def work(task: Task) -> FoldResult:
            return fit_and_score(task, rows, None, responses=True, forgive=False)

        found = run_all(work, tasks, n_jobs)
        predictions[decided] = [result.responses["predict"][0] for result in found]
    return predictions
