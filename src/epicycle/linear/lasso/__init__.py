"""The lasso and the elastic net."""

from epicycle.linear.lasso._lasso import ElasticNet, Lasso
from epicycle.linear.lasso._lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso._path import RegularizationPath, enet_path, lasso_path

__all__ = ["ElasticNet", "ElasticNetCV", "Lasso", "LassoCV", "RegularizationPath", "enet_path", "lasso_path"]
