"""The lasso and the elastic net."""

from epicycle.linear.lasso._lasso import ElasticNet, Lasso
from epicycle.linear.lasso._lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso._multi_task import MultiTaskElasticNet, MultiTaskLasso
from epicycle.linear.lasso._multi_task_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
from epicycle.linear.lasso._path import RegularizationPath, enet_path, lasso_path

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "Lasso",
    "LassoCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "RegularizationPath",
    "enet_path",
    "lasso_path",
]
