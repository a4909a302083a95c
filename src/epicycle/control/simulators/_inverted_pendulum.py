"""`InvertedPendulum`: a rod on a hinge with a motor that is too weak to lift it at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from epicycle.control.simulators._simulator import NOT_NEGATIVE, POSITIVE, Simulator
from epicycle.core._parameters import Real
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G3", certificate="none")
class InvertedPendulum(Simulator):
    r"""Rod on a hinge, to be swung up and held.

    .. math:: \ddot\theta = \frac{3g}{2l} \sin\theta + \frac{3}{m l^2} (u - b \dot\theta)

    The state is :math:`(\theta, \dot\theta)` with the angle from upright, so that the rod hangs at
    :math:`\pm\pi`; the control is a torque. Constants and step are those of Gymnasium's Pendulum. The reward is
    :math:`-(\theta^2 + 0.1 \, \dot\theta^2 + 0.001 \, u^2)` with the angle in :math:`[-\pi, \pi)`.

    Parameters
    ----------
    mass, length : float, default=1
        Mass and length of the rod.
    damping : float, default=0
        Torque of friction for each unit of speed.
    max_torque : float, default=2
        Largest torque.
    max_speed : float, default=8
        Largest speed; what exceeds it after a step is cut. Infinity for none.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import InvertedPendulum
    >>> rod = InvertedPendulum()
    >>> rod.dynamics([np.pi / 2, 0.0], [0.0])
    array([ 0., 15.])
    >>> rod.step([np.pi / 2, 0.0], [0.0]).round(4)
    array([1.6083, 0.75  ])
    """

    state_names = ("angle", "angular speed")
    control_names = ("torque",)
    max_steps = 200
    _domains: ClassVar[Mapping[str, Real]] = {
        "gravity": NOT_NEGATIVE,
        "mass": POSITIVE,
        "length": POSITIVE,
        "damping": NOT_NEGATIVE,
        "max_torque": POSITIVE,
        "max_speed": Real(0, inclusive=False, allow_inf=True),
    }

    def __init__(
        self,
        *,
        gravity: float = 10.0,
        mass: float = 1.0,
        length: float = 1.0,
        damping: float = 0.0,
        max_torque: float = 2.0,
        max_speed: float = 8.0,
        time_step: float = 0.05,
        integrator: str = "semi-implicit",
    ) -> None:
        super().__init__(locals())

    gravity: float
    mass: float
    length: float
    damping: float
    max_torque: float
    max_speed: float

    def _kernel_parameters(self) -> Array:
        return np.array([self.gravity, self.mass, self.length, self.damping, self.max_speed])

    def _control_limits(self) -> tuple[Array, Array]:
        return np.array([-self.max_torque]), np.array([self.max_torque])

    def _start(self, rng: np.random.Generator, rows: int) -> Array:
        return rng.uniform([-np.pi, -1.0], [np.pi, 1.0], size=(rows, 2))

    def _rewards(self, x: Array, u: Array, x_next: Array) -> Array:
        angle = (x[..., 0] + np.pi) % (2 * np.pi) - np.pi
        return np.asarray(-(angle**2 + 0.1 * x[..., 1] ** 2 + 0.001 * u[..., 0] ** 2))
