"""`CartPole`: a pole on a cart, the equations of Barto, Sutton and Anderson (1983)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from epicycle.control.simulators._simulator import NOT_NEGATIVE, POSITIVE, Simulator
from epicycle.core._parameters import Real
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G3", certificate="none")
class CartPole(Simulator):
    r"""Pole on a cart, to be held upright.

    .. math::

        \ddot\theta = \frac{g \sin\theta - \cos\theta \, \dfrac{F + m l \dot\theta^2 \sin\theta
        - \mu_c \, \mathrm{sgn}\, \dot x}{m_c + m} - \dfrac{\mu_p \dot\theta}{m l}}
        {l \big( \tfrac43 - \tfrac{m \cos^2 \theta}{m_c + m} \big)}, \qquad
        \ddot x = \frac{F + m l (\dot\theta^2 \sin\theta - \ddot\theta \cos\theta) - \mu_c \, \mathrm{sgn}\, \dot x}
        {m_c + m}

    The state is :math:`(x, \dot x, \theta, \dot\theta)` with the angle from upright, the control the force on the
    cart. Constants and Euler's step are those of Gymnasium's CartPole. The reward is 1 for every step.

    Parameters
    ----------
    cart_mass, pole_mass : float
        Masses.
    half_length : float, default=0.5
        Distance of the pole's centre from the hinge.
    max_force : float, default=10
        Largest force; the two discrete actions push with it to either side.
    cart_friction, pole_friction : float, default=0
        Friction of the cart on its track, and of the hinge.
    max_position, max_angle : float
        Where an episode ends; the angle in radians, by default 12 degrees.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import LQR, CartPole
    >>> cart = CartPole()
    >>> _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    >>> policy = LQR(A, B, np.eye(4), [[0.1]]).solve()
    >>> int(cart.rollout([0.0, 0.0, 0.1, 0.0], policy=policy, n_steps=500).lengths)
    500
    """

    state_names = ("position", "speed", "angle", "angular speed")
    control_names = ("force",)
    _domains: ClassVar[Mapping[str, Real]] = {
        "gravity": NOT_NEGATIVE,
        "cart_mass": POSITIVE,
        "pole_mass": POSITIVE,
        "half_length": POSITIVE,
        "max_force": POSITIVE,
        "cart_friction": NOT_NEGATIVE,
        "pole_friction": NOT_NEGATIVE,
        "max_position": POSITIVE,
        "max_angle": POSITIVE,
    }

    def __init__(
        self,
        *,
        gravity: float = 9.8,
        cart_mass: float = 1.0,
        pole_mass: float = 0.1,
        half_length: float = 0.5,
        max_force: float = 10.0,
        cart_friction: float = 0.0,
        pole_friction: float = 0.0,
        max_position: float = 2.4,
        max_angle: float = 12 * 2 * np.pi / 360,
        time_step: float = 0.02,
        integrator: str = "euler",
    ) -> None:
        super().__init__(locals())
        self.actions = np.array([[-self.max_force], [self.max_force]])

    gravity: float
    cart_mass: float
    pole_mass: float
    half_length: float
    max_force: float
    cart_friction: float
    pole_friction: float
    max_position: float
    max_angle: float

    def _kernel_parameters(self) -> Array:
        masses = self.cart_mass, self.pole_mass
        return np.array([self.gravity, *masses, self.half_length, self.cart_friction, self.pole_friction])

    def _control_limits(self) -> tuple[Array, Array]:
        return np.array([-self.max_force]), np.array([self.max_force])

    def _state_limits(self) -> tuple[Array, Array]:
        high = np.array([self.max_position, np.inf, self.max_angle, np.inf])
        return -high, high

    def _start(self, rng: np.random.Generator, rows: int) -> Array:
        return rng.uniform(-0.05, 0.05, size=(rows, 4))

    def _rewards(self, x: Array, u: Array, x_next: Array) -> Array:
        return np.ones(x.shape[:-1])
