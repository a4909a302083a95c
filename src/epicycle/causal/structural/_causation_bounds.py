"""`causation_bounds`: probabilities of causation from data, without a model (Tian and Pearl, 2000)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._checks import distribution, items, number
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator import in_catalogue
from epicycle.data._target import as_numbers

Interval = tuple[float, float]


@dataclass(frozen=True)
class CausationBounds:
    """Least and largest values of the probabilities of causation that agree with the data.

    Parameters
    ----------
    necessity, sufficiency, both : pairs of float
        Bounds of PN, PS and PNS; nan where nobody has both cause and outcome (PN) or neither (PS).
    """

    necessity: Interval
    sufficiency: Interval
    both: Interval


@in_catalogue("causal", "H3", certificate="sharp bounds")
def causation_bounds(joint: Any, experiment: Any = None, *, monotonic: bool = False) -> CausationBounds:
    """Sharp bounds on the probabilities of necessity and sufficiency of a binary cause.

    Parameters
    ----------
    joint : array (2, 2)
        Observed probabilities P(x, y), absence first.
    experiment : pair of float, optional
        P(y = 1 | do(x = 0)) and P(y = 1 | do(x = 1)). Without it any values that agree with the observations.
    monotonic : bool, default=False
        Whether the cause never prevents the outcome; the probabilities are then points if there is an experiment.

    Examples
    --------
    Few died of a drug in an experiment, and fewer of those who chose it; yet it killed all who did (Tian and Pearl):

    >>> from epicycle.causal import causation_bounds
    >>> bounds = causation_bounds([[0.486, 0.014], [0.499, 0.001]], (0.014, 0.016))  # rows: no drug, drug; y = death
    >>> tuple(round(p, 6) for p in bounds.necessity)
    (1.0, 1.0)
    """
    p = distribution("joint", as_numbers(joint, "joint").ravel())
    if p.shape != (4,):
        raise DataError(f"joint: expected 2 x 2 probabilities, got shape {np.shape(joint)}")
    p = p.reshape(2, 2)
    free = p.sum(axis=1)[::-1]  # whose outcome under the other value nobody has seen
    low = np.array([p[0, 1], p[1, 1]])
    if experiment is None:
        ranges = [(low[k], low[k] + free[k]) for k in (0, 1)]
    else:
        given = [
            number(f"experiment[{k}]", v, low=0.0, high=1.0) for k, v in enumerate(items("experiment", experiment))
        ]
        if len(given) != 2:
            raise ParameterError(f"experiment={experiment!r:.80}; expected two probabilities")
        for k in (0, 1):
            if not low[k] - 1e-9 <= given[k] <= low[k] + free[k] + 1e-9:
                raise DataError(
                    f"experiment[{k}]={given[k]:g} contradicts the observations, under which P(y | do(x = {k})) is "
                    f"in [{low[k]:g}, {low[k] + free[k]:g}]"
                )
        ranges = [(g, g) for g in given]
    return _bounds(p, ranges, monotonic)


def _bounds(p: np.ndarray, ranges: list[Interval], monotonic: bool) -> CausationBounds:
    """Extremes over what the experiment may give: each bound rises or falls in each of the two."""
    (low0, high0), (low1, high1) = ranges
    y = p[:, 1].sum()
    corners = [(a, b) for a in (low0, high0) for b in (low1, high1)]
    if monotonic:
        # No unit is harmed: P(y | do(0)) <= P(y) <= P(y | do(1)), and PNS is their difference.
        low1, high0 = max(low1, y), min(high0, y)
        if low1 > high1 + 1e-9 or low0 > high0 + 1e-9:
            raise DataError(
                "monotonic=True: the experiment contradicts it, since the cause prevents the outcome in some"
            )
        both = (max(low1 - high0, 0.0), high1 - low0)
        necessity = ((y - high0) / p[1, 1], (y - low0) / p[1, 1]) if p[1, 1] else (np.nan, np.nan)
        sufficiency = ((low1 - y) / p[0, 0], (high1 - y) / p[0, 0]) if p[0, 0] else (np.nan, np.nan)
        return CausationBounds(_unit(necessity), _unit(sufficiency), _unit(both))
    both = (
        min(max(0.0, b - a, y - a, b - y) for a, b in corners),
        max(min(b, 1 - a, p[1, 1] + p[0, 0], b - a + p[1, 0] + p[0, 1]) for a, b in corners),
    )
    necessity = (max(0.0, y - high0), min(p[1, 1], 1 - low0 - p[0, 0]))
    sufficiency = (max(0.0, low1 - y), min(p[0, 0], high1 - p[1, 1]))
    return CausationBounds(
        _unit(tuple(v / p[1, 1] if p[1, 1] else np.nan for v in necessity)),
        _unit(tuple(v / p[0, 0] if p[0, 0] else np.nan for v in sufficiency)),
        _unit(both),
    )


def _unit(pair: Any) -> Interval:
    low, high = (float(np.clip(v, 0.0, 1.0)) for v in pair)
    return low, high
