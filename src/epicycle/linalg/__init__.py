"""Factorisations with refinement, low rank, conjugate gradients, inverses: linear algebra on arrays."""

from epicycle.linalg._least_squares import LeastSquares, solve_normal_equations, solve_triangular_factor

__all__ = ["LeastSquares", "solve_normal_equations", "solve_triangular_factor"]
