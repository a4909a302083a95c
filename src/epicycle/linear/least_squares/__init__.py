"""Least squares, its inference, and its relatives."""

from epicycle.linear.least_squares._estimating_equations import EstimatingEquations
from epicycle.linear.least_squares._james_stein import JamesStein, ShrunkenMeans, shrink_means
from epicycle.linear.least_squares._linear_regression import LinearRegression

__all__ = ["EstimatingEquations", "JamesStein", "LinearRegression", "ShrunkenMeans", "shrink_means"]
