"""Linear models that outliers do not upset."""

from epicycle.linear.robust.quantile import QuantileRegressor

__all__ = ["QuantileRegressor"]
