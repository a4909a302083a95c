"""The choice of the bandwidth by the error on points left out.

With the bandwidth fixed, leaving point i out changes its own fit to one that misses y_i by r_i / (1 - l_ii), exactly.
Generalised cross-validation puts the average of all l_ii in the place of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.linear.local._smoother import Smoother

__all__ = ["candidate_bandwidths", "error_left_out"]


def candidate_bandwidths(smoother: Smoother, given: Any, n_jobs: int | None) -> np.ndarray:
    """The caller's candidates, or 20 from the width of about ten points to that of all."""
    if given is not None:
        try:
            grid = np.atleast_1d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            raise ParameterError(f"candidates={given!r:.80}; expected numbers > 0") from None
        if grid.ndim > 1 or not grid.size or not np.isfinite(grid).all() or (grid <= 0).any():
            raise ParameterError(f"candidates={given!r:.80}; expected finite numbers > 0")
        return np.sort(grid)
    points = smoother.points
    some = points.x[:: max(1, points.n // 500)]
    few = min(1.0, (8 + 4 * smoother.degree * points.x.shape[1]) / points.n)
    low = float(np.median(points.radii(some, few, n_jobs)))
    high = float(np.max(points.radii(some, 1.0, n_jobs)))
    if not high > 0:
        return np.ones(1)
    factor = 1 / 3 if smoother.kernel == "gaussian" else 1.0  # three tau reach about as far as the h of the others
    return np.geomspace(max(low, high / 1e4), high, 20) * factor


def error_left_out(smoother: Smoother, bandwidth: float, rule: str, n_jobs: int | None) -> float:
    """Mean squared error by the rule "loo" or "gcv"; infinite where a point decides its own fit alone."""
    points, weight = smoother.points, smoother.points.weight
    smoother = replace(smoother, bandwidth=bandwidth)
    h, total = smoother.radii(points.x, n_jobs), 0.0
    for t in range(smoother.targets.shape[1]):
        answers = smoother.at(points.x, h, t, n_jobs=n_jobs)
        residual, own = smoother.targets[:, t] - answers.value, answers.own * weight
        left = 1 - (np.full(points.n, own.mean()) if rule == "gcv" else own)
        if (left <= 1e-10).any():
            return np.inf
        total += float(weight @ (residual / left) ** 2)
    return total / float(weight.sum())
