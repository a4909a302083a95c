"""Linear models that outliers do not upset."""

from epicycle.linear.robust._huber import HuberRegressor
from epicycle.linear.robust._quantile import QuantileRegressor
from epicycle.linear.robust._ransac import RANSACRegressor
from epicycle.linear.robust._theil_sen import TheilSenRegressor

__all__ = ["HuberRegressor", "QuantileRegressor", "RANSACRegressor", "TheilSenRegressor"]
