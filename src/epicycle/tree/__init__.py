"""Trees and what is built of them."""

from epicycle.tree.adaboost._adaboost import AdaBoostClassifier
from epicycle.tree.adaboost._regressor import AdaBoostRegressor
from epicycle.tree.boosting._classifier import GradientBoostingClassifier
from epicycle.tree.boosting._hist_gradient_boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from epicycle.tree.boosting._regressor import GradientBoostingRegressor
from epicycle.tree.cart._classifier import DecisionTreeClassifier
from epicycle.tree.cart._regressor import DecisionTreeRegressor
from epicycle.tree.forest._classifier import ExtraTreesClassifier, RandomForestClassifier
from epicycle.tree.forest._embedding import RandomTreesEmbedding
from epicycle.tree.forest._regressor import ExtraTreesRegressor, RandomForestRegressor

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
]
