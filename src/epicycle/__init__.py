"""epicycle: machine learning that shows its work.

Names are loaded on first use, so that ``import epicycle`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Every public name and the module that defines it.
_EXPORTS = {
    "AdaBoostClassifier": "epicycle.tree",
    "BackwardSelection": "epicycle.select",
    "Certificate": "epicycle.evidence",
    "Checkpoint": "epicycle.callbacks",
    "DecisionTreeClassifier": "epicycle.tree",
    "DecisionTreeRegressor": "epicycle.tree",
    "EarlyStopping": "epicycle.callbacks",
    "ElasticNet": "epicycle.linear",
    "ElasticNetCV": "epicycle.linear",
    "EpicycleRegression": "epicycle.linear",
    "EstimatingEquations": "epicycle.linear",
    "ExtraTreesClassifier": "epicycle.tree",
    "ExtraTreesRegressor": "epicycle.tree",
    "Family": "epicycle.linear",
    "FilterSelection": "epicycle.select",
    "ForwardSelection": "epicycle.select",
    "FourierFeatures": "epicycle.linear",
    "GeneralizedLinearModel": "epicycle.linear",
    "GradientBoostingClassifier": "epicycle.tree",
    "GradientBoostingRegressor": "epicycle.tree",
    "HingeFeatures": "epicycle.linear",
    "History": "epicycle.evidence",
    "HuberRegressor": "epicycle.linear",
    "JamesStein": "epicycle.linear",
    "Lars": "epicycle.linear",
    "Lasso": "epicycle.linear",
    "LassoCV": "epicycle.linear",
    "LinearRegression": "epicycle.linear",
    "LinearSpline": "epicycle.linear",
    "LocallyWeightedRegression": "epicycle.linear",
    "LogisticRegression": "epicycle.linear",
    "LogisticRegressionCV": "epicycle.linear",
    "MatchingPursuit": "epicycle.linear",
    "OneVsRest": "epicycle.linear",
    "Perceptron": "epicycle.linear",
    "PolynomialRegression": "epicycle.linear",
    "QuantileRegressor": "epicycle.linear",
    "RandomForestClassifier": "epicycle.tree",
    "RandomForestRegressor": "epicycle.tree",
    "RegularizationPath": "epicycle.linear",
    "Ridge": "epicycle.linear",
    "RidgeCV": "epicycle.linear",
    "SGDClassifier": "epicycle.linear",
    "SGDRegressor": "epicycle.linear",
    "ShrunkenMeans": "epicycle.linear",
    "Stagewise": "epicycle.linear",
    "TimeLimit": "epicycle.callbacks",
    "config": "epicycle.settings",
    "enet_path": "epicycle.linear",
    "get_config": "epicycle.settings",
    "lasso_path": "epicycle.linear",
    "load": "epicycle.io",
    "methods": "epicycle.base",
    "save": "epicycle.io",
    "scan": "epicycle.data",
    "shrink_means": "epicycle.linear",
}
_SUBPACKAGES = (
    "callbacks",
    "data",
    "diagnose",
    "engine",
    "exceptions",
    "io",
    "linear",
    "online",
    "optim",
    "plot",
    "select",
    "theory",
    "tree",
)

__all__ = [
    "AdaBoostClassifier",
    "BackwardSelection",
    "Certificate",
    "Checkpoint",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "EarlyStopping",
    "ElasticNet",
    "ElasticNetCV",
    "EpicycleRegression",
    "EstimatingEquations",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "Family",
    "FilterSelection",
    "ForwardSelection",
    "FourierFeatures",
    "GeneralizedLinearModel",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HingeFeatures",
    "History",
    "HuberRegressor",
    "JamesStein",
    "Lars",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LinearSpline",
    "LocallyWeightedRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MatchingPursuit",
    "OneVsRest",
    "Perceptron",
    "PolynomialRegression",
    "QuantileRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RegularizationPath",
    "Ridge",
    "RidgeCV",
    "SGDClassifier",
    "SGDRegressor",
    "ShrunkenMeans",
    "Stagewise",
    "TimeLimit",
    "__version__",
    "callbacks",
    "config",
    "data",
    "diagnose",
    "enet_path",
    "engine",
    "exceptions",
    "get_config",
    "io",
    "lasso_path",
    "linear",
    "load",
    "methods",
    "online",
    "optim",
    "plot",
    "save",
    "scan",
    "select",
    "shrink_means",
    "theory",
    "tree",
]

if TYPE_CHECKING:
    from epicycle import (
        callbacks,
        data,
        diagnose,
        engine,
        exceptions,
        io,
        linear,
        online,
        optim,
        plot,
        select,
        theory,
        tree,
    )
    from epicycle.base import methods
    from epicycle.callbacks import Checkpoint, EarlyStopping, TimeLimit
    from epicycle.data import scan
    from epicycle.evidence import Certificate, History
    from epicycle.io import load, save
    from epicycle.linear import (
        ElasticNet,
        ElasticNetCV,
        EpicycleRegression,
        EstimatingEquations,
        Family,
        FourierFeatures,
        GeneralizedLinearModel,
        HingeFeatures,
        HuberRegressor,
        JamesStein,
        Lars,
        Lasso,
        LassoCV,
        LinearRegression,
        LinearSpline,
        LocallyWeightedRegression,
        LogisticRegression,
        LogisticRegressionCV,
        MatchingPursuit,
        OneVsRest,
        Perceptron,
        PolynomialRegression,
        QuantileRegressor,
        RegularizationPath,
        Ridge,
        RidgeCV,
        SGDClassifier,
        SGDRegressor,
        ShrunkenMeans,
        Stagewise,
        enet_path,
        lasso_path,
        shrink_means,
    )
    from epicycle.select import BackwardSelection, FilterSelection, ForwardSelection
    from epicycle.settings import config, get_config
    from epicycle.tree import (
        AdaBoostClassifier,
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
