"""Moments, exponential families and links, class labels and scores, tables of coefficients."""

from epicycle.stats import families, links
from epicycle.stats._family import Family

__all__ = ["Family", "families", "links"]
