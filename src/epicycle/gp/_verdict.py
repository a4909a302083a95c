"""How a search for hyper-parameters is judged."""

from __future__ import annotations

import numpy as np

from epicycle.core._evidence import Certificate
from epicycle.gp._starts import Likelihood
from epicycle.optim._box_bfgs import Summit, steepness

__all__ = ["verdict"]


def verdict(
    summit: Summit, bounds: np.ndarray, likelihood: Likelihood, tol: float, kind: str, error: float, words: str
) -> tuple[Certificate, str]:
    """(certificate, why the search ended), for a search, or for hyper-parameters that stayed as they were.

    kind, error, words : what else has to be small, such as the backward error of a linear system
    """
    if summit.reason == "fixed":
        certificate = Certificate(kind, error, tol, words)
    else:
        steep = steepness(summit.theta, summit.gradient, bounds, likelihood.scale)
        tolerance = max(tol, likelihood.standard_error / likelihood.scale)
        meaning = (
            f"by no hyper-parameter within its bounds does the log marginal likelihood rise faster than {steep:.1e} "
            "for every two observations: a stationary point, a local optimum as a rule (further starts may find "
            f"another); {words}"
        )
        if tolerance > tol:
            meaning += (
                f"; the gradient itself is known to {tolerance:.1e} only, for rounding or the draws it comes from"
            )
        certificate = Certificate("projected gradient", max(steep, error), tolerance, meaning)
    reason = summit.reason if summit.reason in ("stopped", "max_iter") else "stalled"
    return certificate, "converged" if certificate.holds and reason != "stopped" else reason
