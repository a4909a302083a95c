"""Losses, penalties, solvers, duality and gradient checks: the mathematics that every model stands on."""

from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.linalg._least_squares import LeastSquares, solve_normal_equations, solve_triangular_factor
from epicycle.optim._likelihoods import Logistic, Multinomial
from epicycle.optim._loss import Loss
from epicycle.optim._losses import Squared
from epicycle.optim._objective import FunctionObjective, Metric, Objective
from epicycle.optim._penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from epicycle.optim.solvers._bfgs import bfgs, lbfgs
from epicycle.optim.solvers._conjugate_gradient import conjugate_gradient
from epicycle.optim.solvers._gradient_descent import Ladder, gradient_descent, learning_rate_ladder
from epicycle.optim.solvers._newton import newton
from epicycle.optim.solvers._solve import SOLVERS, SolverInfo, solve
from epicycle.optim.solvers._stochastic import stochastic
from epicycle.optim.teaching._conjugate import conjugate
from epicycle.optim.teaching._duality import KKT, Program, dual_value, duality_gap, kkt, lagrangian
from epicycle.optim.teaching._games import GameSolution, SaddlePoint, matrix_game, saddle_point
from epicycle.optim.teaching._gradient_check import GradientCheck, check_gradient

__all__ = [
    "KKT",
    "L1",
    "L2",
    "SOLVERS",
    "ElasticNet",
    "FunctionObjective",
    "GameSolution",
    "GradientCheck",
    "Ladder",
    "LeastSquares",
    "Logistic",
    "Loss",
    "Metric",
    "Monitor",
    "Multinomial",
    "NoPenalty",
    "Objective",
    "Penalty",
    "Program",
    "SaddlePoint",
    "Solution",
    "SolverInfo",
    "Squared",
    "bfgs",
    "check_gradient",
    "conjugate",
    "conjugate_gradient",
    "dual_value",
    "duality_gap",
    "gradient_descent",
    "kkt",
    "lagrangian",
    "lbfgs",
    "learning_rate_ladder",
    "matrix_game",
    "newton",
    "saddle_point",
    "solve",
    "solve_normal_equations",
    "solve_triangular_factor",
    "stochastic",
]
