"""`Quadrotor2D`: a body with two rotors that flies in a vertical plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from epicycle.control.simulators._simulator import NOT_NEGATIVE, POSITIVE, Simulator
from epicycle.core._parameters import Real
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G3", certificate="none")
class Quadrotor2D(Simulator):
    r"""Body with two rotors in a vertical plane, to hover at the origin.

    .. math::

        m \ddot x = -(u_1 + u_2) \sin\theta, \qquad m \ddot z = (u_1 + u_2) \cos\theta - m g, \qquad
        I \ddot\theta = r (u_1 - u_2)

    The state is :math:`(x, z, \theta, \dot x, \dot z, \dot\theta)`, the controls are the thrusts of the two rotors,
    between 0 and `max_thrust`. The reward is minus the squared distance from hovering,
    :math:`-(x^2 + z^2 + 0.1 \, \theta^2 + 0.1 \, \|v\|^2 + 0.001 \, \|u - mg/2\|^2)`.

    Parameters
    ----------
    mass, inertia, arm : float
        Mass, moment of inertia, and distance of a rotor from the centre.
    max_thrust : float, default=10
        Largest thrust of a rotor.
    max_distance : float, default=10
        Distance from the origin, across or up, at which an episode ends.

    Examples
    --------
    >>> from epicycle.control import Quadrotor2D
    >>> body = Quadrotor2D()
    >>> bool(abs(body.dynamics([0.0] * 6, body.hover)).max() < 1e-12)
    True
    """

    state_names = ("position", "height", "tilt", "speed", "climb", "angular speed")
    control_names = ("right thrust", "left thrust")
    _domains: ClassVar[Mapping[str, Real]] = {
        "gravity": NOT_NEGATIVE,
        "mass": POSITIVE,
        "inertia": POSITIVE,
        "arm": POSITIVE,
        "max_thrust": POSITIVE,
        "max_distance": POSITIVE,
    }

    def __init__(
        self,
        *,
        gravity: float = 9.81,
        mass: float = 0.486,
        inertia: float = 0.00383,
        arm: float = 0.25,
        max_thrust: float = 10.0,
        max_distance: float = 10.0,
        time_step: float = 0.02,
        integrator: str = "rk4",
    ) -> None:
        super().__init__(locals())

    gravity: float
    mass: float
    inertia: float
    arm: float
    max_thrust: float
    max_distance: float

    @property
    def hover(self) -> Array:
        """Thrusts that carry the weight."""
        return np.full(2, self.mass * self.gravity / 2)

    def _kernel_parameters(self) -> Array:
        return np.array([self.gravity, self.mass, self.inertia, self.arm])

    def _control_limits(self) -> tuple[Array, Array]:
        return np.zeros(2), np.full(2, self.max_thrust)

    def _state_limits(self) -> tuple[Array, Array]:
        high = np.array([self.max_distance, self.max_distance, *[np.inf] * 4])
        return -high, high

    def _start(self, rng: np.random.Generator, rows: int) -> Array:
        high = np.array([1.0, 1.0, 0.3, 0.1, 0.1, 0.1])
        return rng.uniform(-high, high, size=(rows, 6))

    def _rewards(self, x: Array, u: Array, x_next: Array) -> Array:
        weights = np.array([1.0, 1.0, 0.1, 0.1, 0.1, 0.1])
        return np.asarray(-(x**2 @ weights) - 0.001 * ((u - self.hover) ** 2).sum(axis=-1))
