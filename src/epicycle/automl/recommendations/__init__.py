"""Recommendations from a table of ratings: :func:`recommend_table` and what it returns."""

from epicycle.automl.recommendations._recommend_table import recommend_table
from epicycle.automl.recommendations._recommendation_run import RecommendationRun

__all__ = ["RecommendationRun", "recommend_table"]
