"""Regression in a basis of functions: polynomials, linear splines, sines and cosines."""

from epicycle.linear.basis.features import FourierFeatures, HingeFeatures
from epicycle.linear.basis.polynomial import PolynomialRegression
from epicycle.linear.basis.spline import LinearSpline

__all__ = ["FourierFeatures", "HingeFeatures", "LinearSpline", "PolynomialRegression"]
