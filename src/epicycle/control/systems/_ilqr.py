"""`iLQR`: trajectories of nonlinear systems by repeated linear quadratic regulators."""

from __future__ import annotations

from typing import Any

from epicycle.control.systems._ddp import DDP
from epicycle.core.estimator import in_catalogue


@in_catalogue("control", "G5", certificate="projected gradient")
class iLQR(DDP):  # noqa: N801  (its name in the literature)
    """Iterative LQR: ``DDP`` without the second derivatives of the dynamics.

    Its rounds are cheaper and its models convex; near the solution it gains digits at a steady rate and not twice as
    many in every round.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import QuadraticCost, Quadrotor2D, iLQR
    >>> body = Quadrotor2D()
    >>> cost = QuadraticCost(np.eye(6), 0.1 * np.eye(2), Q_final=100 * np.eye(6), control_target=body.hover)
    >>> solution = iLQR(body, cost).solve([1.0, -1.0, 0.0, 0.0, 0.0, 0.0], np.tile(body.hover, (150, 1)))
    >>> bool(abs(solution.states[-1]).max() < 0.1), solution.certificate.holds
    (True, True)
    """

    def __init__(
        self,
        dynamics: Any,
        cost: Any,
        *,
        control_low: Any = None,
        control_high: Any = None,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        limits = {"control_low": control_low, "control_high": control_high}
        super().__init__(dynamics, cost, **limits, second_order=False, tol=tol, max_iter=max_iter)
