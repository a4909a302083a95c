"""Regression trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data import ArrayData
from epicycle.data._target import as_numeric_target
from epicycle.tree.cart._base import DecisionTree
from epicycle.tree.cart._grow import Target, number_target
from epicycle.tree.cart._parameters import growth_domains

__all__ = ["DecisionTreeRegressor", "check_numbers"]


def check_numbers(y: np.ndarray, weight: np.ndarray, criterion: str) -> None:
    """Poisson deviance is for counts: none below zero, and not all zero."""
    if criterion != "poisson":
        return
    there = y[weight > 0]
    if (there < 0).any():
        raise DataError(f"y: criterion='poisson' takes targets >= 0, got {there.min():g}")
    if (there.reshape(len(there), -1).sum(axis=0) == 0).any():
        raise DataError("y: criterion='poisson' needs a positive target; all are zero")


class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    r"""A regression tree, grown by exact search (CART).

    The prediction is constant in each of M boxes, :math:`f(x) = \sum_m c_m 1(x \in R_m)`. Boxes are divided in two,
    where a threshold on one feature, or a set of levels, lowers

    .. math:: L = \sum_i w_i (y_i - f(x_i))^2 + \gamma \sum_m c_m^2 + \lambda M

    most, until none does (with :math:`\lambda = \gamma = 0`: until boxes are pure, or a limit is met). The best
    constants are :math:`c_m = \sum_{i \in m} w_i y_i / (\gamma + \sum_{i \in m} w_i)`. Every threshold between two
    distinct numbers of the node is tried. Missing values go to the side where more is gained.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        What boxes are divided by; leaves of "absolute_error" hold medians. "poisson" is half the deviance.
    splitter : {"best", "random"}, default="best"
        "random" draws one threshold for each feature, and takes the best of those.
    max_depth : int or None, default=None
        Splits on the way to a leaf at most.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Rows of a node that is split, and of a leaf, at least; a float is a share of the rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that a leaf has at least.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features that a node looks at, drawn anew for each; a float is a share. None means all.
    random_state : int, Generator, RandomState or None, default=None
        Seed of what is drawn; without effect where nothing is.
    max_leaf_nodes : int or None, default=None
        Leaves at most; the tree then grows where most is gained.
    min_impurity_decrease : float, default=0.0
        A split has to lower the mean impurity of all rows by this.
    leaf_cost : float, default=0.0
        :math:`\lambda`: splits that do not lower the sum of losses by more than this are not made.
    leaf_l2 : float, default=0.0
        :math:`\gamma`, for squared error.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning, in units of the mean impurity.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise. For one output.
    categorical_features : "from_dtype", None, or list of names, numbers or truth values, default="from_dtype"
        Columns that are divided by sets of levels. "from_dtype" takes the columns of a frame that have a categorical
        type. Levels are learnt and later found by value; what the 255 most frequent do not cover counts as missing.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do in prediction with levels that the fit did not see.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.

    Attributes
    ----------
    tree_ : Tree
        The nodes as arrays: ``children_left``, ``children_right``, ``feature``, ``threshold``, ``value``, ``impurity``,
        ``n_node_samples``, ``weighted_n_node_samples``, ``missing_go_to_left``.
    categories_ : dict of ndarray
        Levels of the columns of categories, by the number of the column.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the decrease of impurity.
    certificate_ : Certificate
        None for the tree, which is greedy; it says what each split, and a pruning, is the best of.
    history_ : History
        One row: the mean impurity of the leaves, their number, the depth, and seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    >>> print(model.export_text(decimals=3))
    s5 <= -0.004
    |   bmi <= 0.006
    |   |   96.310  (171 rows)
    |   bmi > 0.006
    |   |   159.745  (47 rows)
    s5 > -0.004
    |   bmi <= 0.015
    |   |   162.681  (116 rows)
    |   bmi > 0.015
    |   |   225.880  (108 rows)
    """

    _target = "numeric"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "criterion": Choice("squared_error", "absolute_error", "poisson"),
        "splitter": Choice("best", "random"),
        **growth_domains(),
        "leaf_l2": Real(0),
    }
    _card: ClassVar[MethodCard] = MethodCard(family="tree", catalogue=("D1",), engines=("memory",), certificate="none")

    _vector_: bool

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        leaf_l2: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.leaf_cost = leaf_cost
        self.leaf_l2 = leaf_l2
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _penalty(self) -> float:
        if self.leaf_l2 and self.criterion != "squared_error":
            raise ParameterError(f"leaf_l2={self.leaf_l2:g} is for criterion='squared_error', not {self.criterion!r}")
        return float(self.leaf_l2)

    def _prepare(self, data: ArrayData) -> tuple[Target, np.ndarray]:
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        self._vector_ = data.target_is_vector
        if self.monotonic_cst is not None and data.n_targets > 1:
            raise DataError(f"monotonic_cst: y has {data.n_targets} columns; expected one")
        check_numbers(data.y, weight, self.criterion)
        if not (weight > 0).any():
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        return number_target(data.y, weight, self.criterion, self._penalty()), weight

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        return as_numeric_target(y, n, multi_output=True, estimator_name=type(self).__name__)

    def _row_losses(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.mean((values - y.reshape(len(y), -1)) ** 2, axis=1)

    def predict(self, X: Any) -> Any:
        """The value of the leaf of every row, (n_samples,) or (n_samples, n_outputs)."""
        values = self._values(X)
        return values[:, 0] if self._vector_ else values
