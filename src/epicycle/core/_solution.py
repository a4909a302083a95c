"""Solutions: what a solver returns to the estimator that called it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._history import History


@dataclass
class Solution:
    """The final point of a solver with its history, its certificate and the reason for stopping."""

    x: np.ndarray
    value: float
    history: History
    certificate: Certificate
    n_iter: int
    #: why it stopped: "converged", "max_iter", "stalled", "diverged", "stopped" (a callback asked for it)
    reason: str
    message: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        return self.reason == "converged" and self.certificate.holds
