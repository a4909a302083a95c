"""epicycle: machine learning that shows its work.

Names are loaded on first use, so that ``import epicycle`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Every public name and the module that defines it.
_EXPORTS = {
    "Certificate": "epicycle.evidence",
    "Checkpoint": "epicycle.callbacks",
    "DecisionTreeClassifier": "epicycle.tree",
    "DecisionTreeRegressor": "epicycle.tree",
    "EarlyStopping": "epicycle.callbacks",
    "ElasticNet": "epicycle.linear",
    "ElasticNetCV": "epicycle.linear",
    "ExtraTreesClassifier": "epicycle.tree",
    "ExtraTreesRegressor": "epicycle.tree",
    "GradientBoostingClassifier": "epicycle.tree",
    "GradientBoostingRegressor": "epicycle.tree",
    "History": "epicycle.evidence",
    "Lasso": "epicycle.linear",
    "LassoCV": "epicycle.linear",
    "LinearRegression": "epicycle.linear",
    "LogisticRegression": "epicycle.linear",
    "RandomForestClassifier": "epicycle.tree",
    "RandomForestRegressor": "epicycle.tree",
    "RegularizationPath": "epicycle.linear",
    "Ridge": "epicycle.linear",
    "TimeLimit": "epicycle.callbacks",
    "config": "epicycle.settings",
    "enet_path": "epicycle.linear",
    "get_config": "epicycle.settings",
    "lasso_path": "epicycle.linear",
    "load": "epicycle.io",
    "methods": "epicycle.base",
    "save": "epicycle.io",
    "scan": "epicycle.data",
}
_SUBPACKAGES = ("callbacks", "data", "engine", "exceptions", "io", "linear", "optim", "tree")

__all__ = [
    "Certificate",
    "Checkpoint",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "EarlyStopping",
    "ElasticNet",
    "ElasticNetCV",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "History",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RegularizationPath",
    "Ridge",
    "TimeLimit",
    "__version__",
    "callbacks",
    "config",
    "data",
    "enet_path",
    "engine",
    "exceptions",
    "get_config",
    "io",
    "lasso_path",
    "linear",
    "load",
    "methods",
    "optim",
    "save",
    "scan",
    "tree",
]

if TYPE_CHECKING:
    from epicycle import callbacks, data, engine, exceptions, io, linear, optim, tree
    from epicycle.base import methods
    from epicycle.callbacks import Checkpoint, EarlyStopping, TimeLimit
    from epicycle.data import scan
    from epicycle.evidence import Certificate, History
    from epicycle.io import load, save
    from epicycle.linear import (
        ElasticNet,
        ElasticNetCV,
        Lasso,
        LassoCV,
        LinearRegression,
        LogisticRegression,
        RegularizationPath,
        Ridge,
        enet_path,
        lasso_path,
    )
    from epicycle.settings import config, get_config
    from epicycle.tree import (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    elif name in _SUBPACKAGES:
        value = import_module(f"epicycle.{name}")
    else:
        raise AttributeError(f"module 'epicycle' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
