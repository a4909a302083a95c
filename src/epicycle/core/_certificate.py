"""Certificates: how good a fit is as an optimisation."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """Quality of a fit as an optimisation, in a number that can be checked.

    Parameters
    ----------
    kind : str
        The quantity: ``"duality gap"``, ``"newton decrement"``, ``"gradient norm"``, ..., or ``"none"`` for
        methods that optimise nothing.
    value : float
        The measured quantity, relative to the scale that `meaning` names.
    tolerance : float
        The largest value with which the certificate holds.
    meaning : str
        The statement that is true when the certificate holds, in plain words.

    Examples
    --------
    >>> from epicycle import Certificate
    >>> c = Certificate("duality gap", 3e-12, 1e-8, "the objective is within 3e-12 of its minimum, relative")
    >>> c.holds
    True
    """

    kind: str
    value: float
    tolerance: float
    meaning: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "tolerance"):  # NumPy's numbers become plain ones, also in files and JSON
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def holds(self) -> bool:
        """Whether the value is a number at or below the tolerance."""
        return math.isfinite(self.value) and self.value <= self.tolerance

    def __str__(self) -> str:
        if self.kind == "none":
            return f"none: {self.meaning}"
        verdict = "holds" if self.holds else "does not hold"
        return f"{self.kind} {self.value:.2e} (tolerance {self.tolerance:.2e}): {verdict}"

    def _repr_html_(self) -> str:
        mark = "&#10003;" if self.holds else "&#10007;"
        return f"<span title='{self.meaning}'>{mark} {self}</span>"
