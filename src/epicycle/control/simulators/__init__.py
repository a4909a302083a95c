"""Mechanical systems to control, in native code, and as Gymnasium environments."""

from epicycle.control.simulators._bicycle import Bicycle
from epicycle.control.simulators._cart_pole import CartPole
from epicycle.control.simulators._environment import Environment
from epicycle.control.simulators._inverted_pendulum import InvertedPendulum
from epicycle.control.simulators._mountain_car import MountainCar
from epicycle.control.simulators._quadrotor_2d import Quadrotor2D
from epicycle.control.simulators._rollout import Rollout
from epicycle.control.simulators._simulator import Simulator

__all__ = [
    "Bicycle",
    "CartPole",
    "Environment",
    "InvertedPendulum",
    "MountainCar",
    "Quadrotor2D",
    "Rollout",
    "Simulator",
]
