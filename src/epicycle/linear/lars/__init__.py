"""Least angle regression, stagewise regression and matching pursuit."""

from epicycle.linear.lars._lars import Lars
from epicycle.linear.lars._matching_pursuit import MatchingPursuit
from epicycle.linear.lars._stagewise import Stagewise

__all__ = ["Lars", "MatchingPursuit", "Stagewise"]
