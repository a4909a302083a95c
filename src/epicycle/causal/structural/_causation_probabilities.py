"""`CausationProbabilities`: was a cause necessary, was it sufficient; and what data alone can say about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class CausationProbabilities:
    """Probabilities of causation (Pearl, 1999).

    Parameters
    ----------
    necessity : float
        PN: given cause and outcome, the outcome would not have been without the cause; nan where no unit has both.
    sufficiency : float
        PS: given neither, the outcome would have been with the cause; nan where no unit has neither.
    both : float
        PNS: the outcome is there with the cause and not without it.
    necessity_error, sufficiency_error, both_error : float
        Standard errors from the draws; zero where all values of the noise were listed.
    """

    necessity: float
    sufficiency: float
    both: float
    necessity_error: float
    sufficiency_error: float
    both_error: float

    @classmethod
    def of(
        cls, present: Array, absent: Array, outcome: Array, with_it: Array, without: Array, weight: Array, exact: bool
    ) -> CausationProbabilities:
        """From the same units as they are, with and without the cause."""
        shares = (
            share(~without, present & outcome, weight),
            share(with_it, absent & ~outcome, weight),
            share(with_it & ~without, np.ones_like(outcome), weight),
        )
        values = [p for p, _ in shares]
        errors = [0.0 if exact else e for _, e in shares]
        return cls(*values, *errors)


def share(event: Array, among: Array, weight: Array) -> tuple[float, float]:
    """Probability of an event among some units, nan where there are none, with the error of independent draws."""
    whole = float(weight @ among)
    if whole == 0:
        return float("nan"), float("nan")
    p = float(weight @ (among & event)) / whole
    return p, float(np.sqrt(p * (1 - p) / int(among.sum())))
