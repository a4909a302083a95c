"""`Bicycle`: the kinematic bicycle, the usual model of a car."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from epicycle.control.simulators._simulator import POSITIVE, Simulator
from epicycle.core._parameters import Real
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G3", certificate="none")
class Bicycle(Simulator):
    r"""Kinematic bicycle: two wheels that do not slip, the front one steered; it is to follow a straight line.

    .. math::

        \dot x = v \cos(\psi + \beta), \quad \dot y = v \sin(\psi + \beta), \quad
        \dot\psi = \frac{v}{l_r} \sin\beta, \quad \dot v = a, \qquad
        \tan\beta = \frac{l_r}{l_f + l_r} \tan\delta

    The state is :math:`(x, y, \psi, v)`: position of the centre of mass, heading and speed; the controls are the
    acceleration :math:`a` and the angle :math:`\delta` of the front wheel. The reward is
    :math:`-(y^2 + 0.1 \, \psi^2 + 0.1 \, (v - v^*)^2 + 0.01 \, (a^2 + \delta^2))`.

    Parameters
    ----------
    front, rear : float
        Distances of the axles from the centre of mass, :math:`l_f` and :math:`l_r`.
    max_acceleration : float, default=3
        Largest acceleration, forwards and backwards.
    max_steering : float, default=0.6
        Largest angle of the front wheel, in radians, below a quarter turn.
    target_speed : float, default=5
        Speed :math:`v^*` of the reward.
    max_offset : float, default=10
        Distance from the line at which an episode ends.

    Examples
    --------
    A wheel that is held goes in a circle:

    >>> import numpy as np
    >>> from epicycle.control import Bicycle
    >>> car = Bicycle(front=1.0, rear=1.0, time_step=0.01)
    >>> path = car.rollout([0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.5], (3000, 1))).states
    >>> radius = np.ptp(path[:, 1]) / 2
    >>> bool(abs(radius - np.sqrt(1 + 4 / np.tan(0.5) ** 2)) < 1e-4)
    True
    """

    state_names = ("x", "y", "heading", "speed")
    control_names = ("acceleration", "steering")
    _domains: ClassVar[Mapping[str, Real]] = {
        "front": POSITIVE,
        "rear": POSITIVE,
        "max_acceleration": POSITIVE,
        "max_steering": Real(0, 1.57, inclusive=False),
        "target_speed": Real(),
        "max_offset": POSITIVE,
    }

    def __init__(
        self,
        *,
        front: float = 1.2,
        rear: float = 1.6,
        max_acceleration: float = 3.0,
        max_steering: float = 0.6,
        target_speed: float = 5.0,
        max_offset: float = 10.0,
        time_step: float = 0.05,
        integrator: str = "rk4",
    ) -> None:
        super().__init__(locals())

    front: float
    rear: float
    max_acceleration: float
    max_steering: float
    target_speed: float
    max_offset: float

    def _kernel_parameters(self) -> Array:
        return np.array([self.front, self.rear, self.target_speed])

    def _control_limits(self) -> tuple[Array, Array]:
        high = np.array([self.max_acceleration, self.max_steering])
        return -high, high

    def _state_limits(self) -> tuple[Array, Array]:
        high = np.array([np.inf, self.max_offset, np.inf, np.inf])
        return -high, high

    def _start(self, rng: np.random.Generator, rows: int) -> Array:
        high = np.array([0.0, 1.0, 0.3, 1.0])
        return np.array([0.0, 0.0, 0.0, self.target_speed]) + rng.uniform(-high, high, size=(rows, 4))

    def _rewards(self, x: Array, u: Array, x_next: Array) -> Array:
        off = x[..., 1] ** 2 + 0.1 * x[..., 2] ** 2 + 0.1 * (x[..., 3] - self.target_speed) ** 2
        return np.asarray(-(off + 0.01 * (u**2).sum(axis=-1)))
