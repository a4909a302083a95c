"""The model without features: mu the same for all rows but for offsets. Its deviance is the scale of everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, SeparationError
from epicycle.data import Data
from epicycle.linear.glm._objective import Totals
from epicycle.linear.glm._response import Response
from epicycle.linear.glm._statistics import constant_statistic, target_statistic
from epicycle.linear.glm._targets import Target
from epicycle.stats.families import StandardFamily

__all__ = ["NullModel", "null_model"]


@dataclass(frozen=True)
class NullModel:
    """The intercept of the null model, its deviance, and what the pass over y found."""

    intercept: float
    deviance: float
    totals: Totals


def null_model(data: Data, target: Target, response: Response, *, intercept: bool, n_jobs: int | None) -> NullModel:
    """Check y, and fit a constant to it."""
    rows, weight, total, size, constant, top, bottom = engine.sum(
        target_statistic, data, target, response, n_jobs=n_jobs
    )
    mean, family = total / weight, response.family
    low, high = family.mean_range if isinstance(family, StandardFamily) else (-np.inf, np.inf)
    inside = low < mean < high
    if intercept and not inside:
        end = low if mean <= low else high
        error = DataError if family.support != (0.0, 1.0) else SeparationError
        raise error(
            f"y: every response of positive weight is {end:g}, so the likelihood of family={family.name!r} has no "
            f"maximum (the intercept would be infinite); expected some {'above' if end == low else 'below'} {end:g}"
        )
    offset = target.offset or target.exposure
    b = float(response.link.link(np.array(mean))) if inside else 0.0
    if offset and inside:
        b = _with_offset(data, target, response, b, n_jobs)
    half = _half_deviance(data, target, response, b, mean, constant, weight, n_jobs) if inside else 0.0
    if float(top) == -float(bottom) and not offset:
        half = 0.0  # but for rounding
    other = max(abs(constant), size) / weight
    scale, unit = (half, Totals.unit) if half > 1e-12 * other else (other, "the size of the responses")
    deviance = 2 * weight * max(half, 0.0) if inside else np.nan
    totals = Totals(rows, weight, constant, max(scale, float(np.finfo(float).tiny)), unit)
    return NullModel(b, deviance, totals)


def _half_deviance(
    data: Data, target: Target, response: Response, b: float, mean: float, constant: float, weight: float,
    n_jobs: int | None,
) -> float:  # fmt: skip
    """The mean of d(y, mean) / 2, which is that of a*(y) less a*(mean): by a pass only where this would cancel."""
    if response.native not in (None, 0) and not (target.offset or target.exposure):
        half = constant / weight - float(response.constant(np.array([mean]))[0])
        if half > 1e-5 * abs(constant) / weight:
            return half
    (loss, _, _) = engine.sum(constant_statistic, data, target, response, b, n_jobs=n_jobs)
    own = 0.0 if isinstance(response.family, StandardFamily) else constant
    return (loss + own) / weight if np.isfinite(loss) else 0.0


def _with_offset(data: Data, target: Target, response: Response, b: float, n_jobs: int | None) -> float:
    """The best constant next to the offsets, by damped Newton steps on the sums over rows."""
    loss, slope, bend = engine.sum(constant_statistic, data, target, response, b, n_jobs=n_jobs)
    if not np.isfinite(loss):  # offsets that push some means out of their range: begin where all are inside
        for trial in (0.0, *np.geomspace(1e-3, 1e6, 40), *-np.geomspace(1e-3, 1e6, 40)):
            loss, slope, bend = engine.sum(constant_statistic, data, target, response, trial, n_jobs=n_jobs)
            if np.isfinite(loss):
                b = float(trial)
                break
        else:
            return b
    for _ in range(100):
        step = -slope / bend if bend > 0 else 0.0
        if not abs(slope * step) > 1e-20 * max(abs(loss), 1e-300) or not np.isfinite(step):
            break
        for _ in range(60):
            new = engine.sum(constant_statistic, data, target, response, b + step, n_jobs=n_jobs)
            if np.isfinite(new[0]) and new[0] <= loss + 1e-13 * abs(loss):
                break
            step *= 0.5
        else:
            break
        b += step
        if new[0] >= loss and abs(new[1]) >= 0.5 * abs(slope):
            break
        loss, slope, bend = new
    return b
