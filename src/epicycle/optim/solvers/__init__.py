"""Solvers by name."""

from epicycle.optim.solvers._bfgs import bfgs, lbfgs
from epicycle.optim.solvers._conjugate_gradient import conjugate_gradient
from epicycle.optim.solvers._gradient_descent import Ladder, gradient_descent, learning_rate_ladder
from epicycle.optim.solvers._newton import newton
from epicycle.optim.solvers._solve import SOLVERS, SolverInfo, solve
from epicycle.optim.solvers._stochastic import stochastic

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
