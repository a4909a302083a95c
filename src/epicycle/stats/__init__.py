"""Moments, exponential families and links, class labels and scores, tables of coefficients."""

from epicycle.stats import families, links
from epicycle.stats._family import Family
from epicycle.stats._summary import Summary

__all__ = ["Family", "Summary", "families", "links"]
