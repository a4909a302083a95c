"""Classification and regression trees (CART)."""

from epicycle.tree.cart._classifier import DecisionTreeClassifier
from epicycle.tree.cart._regressor import DecisionTreeRegressor

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]
