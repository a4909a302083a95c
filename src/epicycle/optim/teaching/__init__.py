"""The teaching kit, on the same losses, penalties and objectives: conjugates, KKT conditions, games, gradients."""

from epicycle.optim.teaching._conjugate import conjugate
from epicycle.optim.teaching._duality import KKT, Program, dual_value, duality_gap, kkt, lagrangian
from epicycle.optim.teaching._games import GameSolution, SaddlePoint, matrix_game, saddle_point
from epicycle.optim.teaching._gradient_check import GradientCheck, check_gradient

__all__ = [
    "KKT",
    "GameSolution",
    "GradientCheck",
    "Program",
    "SaddlePoint",
    "check_gradient",
    "conjugate",
    "dual_value",
    "duality_gap",
    "kkt",
    "lagrangian",
    "matrix_game",
    "saddle_point",
]
