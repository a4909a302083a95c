"""Solvers by name."""

from epicycle.optim.solvers.conjugate_directions import conjugate_gradient
from epicycle.optim.solvers.descent import Ladder, gradient_descent, learning_rate_ladder
from epicycle.optim.solvers.limited_memory_bfgs import lbfgs
from epicycle.optim.solvers.newton_method import newton
from epicycle.optim.solvers.quasi_newton import bfgs
from epicycle.optim.solvers.registry import SOLVERS, SolverInfo, solve
from epicycle.optim.solvers.stochastic_gradient import stochastic

__all__ = [
    "SOLVERS",
    "Ladder",
    "SolverInfo",
    "bfgs",
    "conjugate_gradient",
    "gradient_descent",
    "lbfgs",
    "learning_rate_ladder",
    "newton",
    "solve",
    "stochastic",
]
