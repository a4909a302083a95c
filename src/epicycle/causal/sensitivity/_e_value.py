r"""`e_value`: the least association of a hidden cause with treatment and outcome that could explain an effect away.

A confounder with risk ratios of at most E with the treatment and with the outcome changes a risk ratio by at most the
factor E^2 / (2E - 1) (Ding and VanderWeele 2016), which reaches RR at  E = RR + sqrt(RR (RR - 1)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._checks import items, number
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Boolean, Choice, check_parameter
from epicycle.core.estimator import in_catalogue


@dataclass(frozen=True)
class EValue:
    """Sensitivity of a risk ratio to a hidden confounder.

    Attributes
    ----------
    point : float
        E-value of the estimate.
    limit : float or None
        E-value of the end of the interval that is nearer to no effect; 1 where the interval holds it.
    risk_ratio : float
        The estimate on the scale of risk ratios.
    """

    point: float
    limit: float | None
    risk_ratio: float

    def __str__(self) -> str:
        words = (
            f"a hidden cause would need risk ratios of {self.point:.2f} with both treatment and outcome, beyond what "
            "is measured, to explain the estimate away"
        )
        if self.limit is None:
            return words
        if self.limit == 1:
            return f"{words}; the interval holds no effect already"
        return f"{words}, and of {self.limit:.2f} to make the interval include no effect"


def _as_risk_ratio(value: float, kind: str, rare: bool, error: float = 0.0) -> float:
    if kind == "difference":
        return float(np.exp(0.91 * value + 1.78 * error))
    if kind == "risk_ratio" or rare:
        return value
    if kind == "odds_ratio":
        return float(np.sqrt(value))
    root = np.sqrt(value)
    return float(np.expm1(-np.log(2) * root) / np.expm1(-np.log(2) / root))  # (1 - 2^-root) / (1 - 2^(-1/root))


def _least(ratio: float, no_effect: float) -> float:
    x = ratio / no_effect
    x = 1 / x if x < 1 else x
    return float(x + np.sqrt(x * (x - 1)))


@in_catalogue("causal", "H2", certificate="none")
def e_value(
    estimate: float,
    interval: Any = None,
    *,
    kind: str = "risk_ratio",
    rare: bool = False,
    standard_error: float | None = None,
    no_effect: float = 1.0,
) -> EValue:
    r"""E-value of an effect (VanderWeele and Ding 2017).

    .. math:: E = R + \sqrt{R (R - 1)}

    with the risk ratio R, or 1/R where it is below 1.

    Parameters
    ----------
    estimate : float
        The effect.
    interval : pair of float, optional
        Its confidence interval, on the same scale.
    kind : {"risk_ratio", "odds_ratio", "hazard_ratio", "difference"}, default="risk_ratio"
        Scale of the effect; "difference" is one of means in standard deviations of the outcome.
    rare : bool, default=False
        Whether the outcome is rare (below 15%), so that odds and hazard ratios are nearly risk ratios.
    standard_error : float, optional
        Of a difference, in place of the interval.
    no_effect : float, default=1
        Risk ratio to compare with.

    Examples
    --------
    Smoking and lung cancer (Hammond and Horn 1958):

    >>> from epicycle.causal import e_value
    >>> found = e_value(10.73, (8.02, 14.36))
    >>> round(found.point, 1), round(found.limit, 1)
    (20.9, 15.5)
    """
    check_parameter("e_value", "kind", kind, Choice("risk_ratio", "odds_ratio", "hazard_ratio", "difference"))
    check_parameter("e_value", "rare", rare, Boolean())
    low, high = (-300.0, 300.0) if kind == "difference" else (1e-100, 1e100)  # squares stay in the range of numbers
    value = _as_risk_ratio(number("estimate", estimate, low=low, high=high), kind, rare)
    no_effect = number("no_effect", no_effect, low=1e-100, high=1e100)
    ends: list[float] | None = None
    if standard_error is not None:
        if kind != "difference" or interval is not None:
            raise ParameterError("standard_error: expected with kind='difference', in place of interval")
        error = number("standard_error", standard_error, low=0, high=300.0)
        ends = [_as_risk_ratio(estimate, kind, rare, sign * error) for sign in (-1, 1)]
    elif interval is not None:
        given = [number("interval", x, low=low, high=high) for x in items("interval", interval)]
        if len(given) != 2 or not given[0] <= estimate <= given[1]:
            raise ParameterError(f"interval={interval!r:.80}; expected two ends around the estimate {estimate:g}")
        ends = [_as_risk_ratio(x, kind, rare) for x in given]
    limit = None
    if ends is not None:
        near = ends[0] if value >= no_effect else ends[1]
        crossed = near <= no_effect if value >= no_effect else near >= no_effect
        limit = 1.0 if crossed else _least(near, no_effect)
    return EValue(_least(value, no_effect), limit, value)
