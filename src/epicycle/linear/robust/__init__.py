"""Linear models that outliers do not upset."""

from epicycle.linear.robust.huber import HuberRegressor
from epicycle.linear.robust.quantile import QuantileRegressor

__all__ = ["HuberRegressor", "QuantileRegressor"]
