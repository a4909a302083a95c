"""Trees and what is built of them."""

from epicycle.tree.adaboost import AdaBoostClassifier
from epicycle.tree.cart.classification import DecisionTreeClassifier
from epicycle.tree.cart.regression import DecisionTreeRegressor
from epicycle.tree.classifier import GradientBoostingClassifier
from epicycle.tree.forest.classification import ExtraTreesClassifier, RandomForestClassifier
from epicycle.tree.forest.regression import ExtraTreesRegressor, RandomForestRegressor
from epicycle.tree.regressor import GradientBoostingRegressor

__all__ = [
    "AdaBoostClassifier",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]
