"""Linear models that outliers do not upset."""

from epicycle.linear.robust._huber import HuberRegressor
from epicycle.linear.robust._quantile import QuantileRegressor

__all__ = ["HuberRegressor", "QuantileRegressor"]
