"""An estimate of an average effect with its evidence, as every method returns it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from epicycle.causal.effects._study import Study
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError


@dataclass
class Estimate:
    """An effect, its variance, and what the method knows of the rows.

    weights : weights of the rows under which the arms are compared; None where the method has none.
    propensity : estimated probabilities of treatment; None where the method has none.
    facts : further numbers for `history_`.
    notices : warnings in words.
    """

    effect: float
    variance: float
    certificate: Certificate
    weights: np.ndarray | None = None
    propensity: np.ndarray | None = None
    facts: dict[str, float] = field(default_factory=dict)
    notices: list[Warning] = field(default_factory=list)
    model: object = None


def from_influence(study: Study, effect: float, influence: np.ndarray, tol: float, **more: object) -> Estimate:
    """The estimate whose influence function has mean zero at `effect`; its variance is that of the mean."""
    n = study.size
    moment = abs(float(study.w @ influence))
    spread = np.sqrt(float(study.w @ (study.y - study.w @ study.y / n) ** 2) / n)
    scale = float(study.w @ np.abs(influence)) + n * (spread + abs(effect))  # residuals may all be rounding errors
    certificate = Certificate(
        "moment condition",
        moment / scale if scale > 0 else 0.0,
        max(tol, 1e-12),
        "the influence function has mean zero at the effect, relative to the spread of the outcome: the estimating "
        "equation is solved; that no confounder is missing cannot be seen in the data",
    )
    variance = float(study.w @ influence**2) / n / max(n - 1, 1.0)
    return Estimate(effect, variance, certificate, **more)  # type: ignore[arg-type]


def check_finite(estimate: Estimate) -> None:
    """Raise where sums have left the range of numbers."""
    if not (np.isfinite(estimate.effect) and np.isfinite(estimate.variance)):
        raise DataError(
            f"y: the effect is {estimate.effect:g} with variance {estimate.variance:g}; expected finite numbers; "
            "divide values whose squares are beyond 1e308 by a constant"
        )
