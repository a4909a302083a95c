"""Regression in a basis of functions: polynomials, linear splines, sines and cosines."""

from epicycle.linear.basis._features import FourierFeatures, HingeFeatures
from epicycle.linear.basis._linear_spline import LinearSpline
from epicycle.linear.basis._polynomial_regression import PolynomialRegression

__all__ = ["FourierFeatures", "HingeFeatures", "LinearSpline", "PolynomialRegression"]
