"""The evidence of a trained network: what can truly be said of it."""

from __future__ import annotations

from typing import Any

from epicycle.core._certificate import Certificate
from epicycle.nets.training._options import TrainingOptions


def certificate(
    outcome: Any, options: TrainingOptions, gradient: float, bound: tuple[int, int, float] | None
) -> tuple[Certificate, str]:
    """(certificate, reason of the end): no optimum is claimed of a network, ever."""
    reason = outcome.reason
    if reason == "max_iter" and options.tol is None:
        reason = "converged"  # all the epochs that were asked for
    ended = {
        "converged": f"ended after {outcome.n_iter} epochs",
        "max_iter": f"all {outcome.n_iter} epochs are made, and the loss still fell by more than tol",
        "stopped": f"stopped after {outcome.n_iter} epochs",
        "diverged": f"the loss was no longer a number in epoch {outcome.n_iter + 1}; the weights before it are kept",
    }[reason]
    meaning = f"no proof of optimality; {ended}, with a mean loss of {outcome.objective:.4g}"
    meaning += f" and a gradient of norm {gradient:.2g}"
    if bound is not None:
        errors, n, upper = bound
        meaning += (
            f"; {errors} errors on {n} rows held out, so the error on new rows like them is at most {upper:.4g} with "
            "probability 0.95 (for whichever epoch was chosen by them)"
        )
    return Certificate("none", 0.0 if reason == "converged" else 1.0, 0.0, meaning), reason
