"""`MountainCar`: a car in a valley whose motor is weaker than gravity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from epicycle.control.simulators._simulator import NOT_NEGATIVE, POSITIVE, Simulator
from epicycle.core._parameters import Real
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G3", certificate="none")
class MountainCar(Simulator):
    r"""Car in a valley that has to swing to get out of it.

    .. math:: \ddot x = f u - g \cos 3x

    The state is :math:`(x, \dot x)`, the control a throttle between -1 and 1. At the left end stands a wall that
    stops the car; an episode ends beyond the goal. Constants and step are those of Sutton and of Gymnasium. The reward
    is -1 for every step.

    Parameters
    ----------
    force : float, default=0.001
        Acceleration under full throttle.
    goal : float, default=0.5
        Position that ends an episode.
    max_speed : float, default=0.07
        Largest speed.
    wall : float, default=-1.2
        Position of the wall.

    Examples
    --------
    Full throttle alone does not do it; throttle in the direction of motion does.

    >>> import numpy as np
    >>> from epicycle.control import MountainCar
    >>> car = MountainCar()
    >>> int(car.rollout([-0.5, 0.0], np.ones((200, 1))).lengths)
    200
    >>> int(car.rollout([-0.5, 0.0], policy=lambda X: np.where(X[:, 1:] < 0, -1.0, 1.0), n_steps=200).lengths)
    124
    """

    state_names = ("position", "speed")
    control_names = ("throttle",)
    max_steps = 200
    actions = np.array([[-1.0], [0.0], [1.0]])
    _domains: ClassVar[Mapping[str, Real]] = {
        "gravity": NOT_NEGATIVE,
        "force": POSITIVE,
        "goal": Real(),
        "max_speed": POSITIVE,
        "wall": Real(),
    }

    def __init__(
        self,
        *,
        gravity: float = 0.0025,
        force: float = 0.001,
        goal: float = 0.5,
        max_speed: float = 0.07,
        wall: float = -1.2,
        time_step: float = 1.0,
        integrator: str = "semi-implicit",
    ) -> None:
        super().__init__(locals())

    gravity: float
    force: float
    goal: float
    max_speed: float
    wall: float

    def _kernel_parameters(self) -> Array:
        end = max(0.6, self.goal + 0.1)  # of the track on the right
        return np.array([self.force, self.gravity, self.max_speed, self.wall, end])

    def _control_limits(self) -> tuple[Array, Array]:
        return np.array([-1.0]), np.array([1.0])

    def _state_limits(self) -> tuple[Array, Array]:
        below = np.nextafter(self.goal, -np.inf)  # the goal itself ends an episode
        return np.full(2, -np.inf), np.array([below, np.inf])

    def _start(self, rng: np.random.Generator, rows: int) -> Array:
        return np.column_stack([rng.uniform(-0.6, -0.4, size=rows), np.zeros(rows)])

    def _rewards(self, x: Array, u: Array, x_next: Array) -> Array:
        return np.full(x.shape[:-1], -1.0)
