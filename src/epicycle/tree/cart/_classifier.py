"""Classification trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data import ArrayData
from epicycle.data._target import as_labels
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import class_weights
from epicycle.tree._shared import known_codes, per_block
from epicycle.tree.cart._base import DecisionTree
from epicycle.tree.cart._grow import Target, class_target
from epicycle.tree.cart._parameters import growth_domains
from epicycle.tree.cart._targets import encode_classes

__all__ = ["DecisionTreeClassifier"]


class DecisionTreeClassifier(ClassifierMixin, DecisionTree):
    r"""A classification tree, grown by exact search (CART).

    With :math:`p_{mk}` the share of class k in box m, boxes are divided in two, where a threshold on one feature, or a
    set of levels, lowers

    .. math:: L = \sum_m W_m \, Q_m + \lambda M , \qquad
              Q_m = \sum_k p_{mk} (1 - p_{mk}) \quad\text{or}\quad -\sum_k p_{mk} \log_2 p_{mk}

    most (Gini's index, or the entropy, which is the logistic loss of the best constants), until boxes are pure or a
    limit is met. Every threshold between two distinct numbers of the node is tried. Missing values go to the side where
    more is gained. Levels are put in the order of their share of the second class, which is optimal; for more than two
    classes all sets are tried up to 10 levels, and beyond that levels are ordered by their first principal component.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        :math:`Q`; the last two are the same.
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
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class; "balanced" gives all classes the same total.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning, in units of the mean impurity.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise. For two
        classes, and the probability of the second.
    categorical_features : "from_dtype", None, or list of names, numbers or truth values, default="from_dtype"
        Columns that are divided by sets of levels. "from_dtype" takes the columns of a frame that have a categorical
        type. Levels are learnt and later found by value; what the 255 most frequent do not cover counts as missing.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do in prediction with levels that the fit did not see.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
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
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> print(model.export_text())
    petal length (cm) <= 2.45
    |   0  100%  (50 rows)
    petal length (cm) > 2.45
    |   petal width (cm) <= 1.75
    |   |   1  91%  (54 rows)
    |   petal width (cm) > 1.75
    |   |   2  98%  (46 rows)
    """

    _target = "labels"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "criterion": Choice("gini", "entropy", "log_loss"),
        "splitter": Choice("best", "random"),
        **growth_domains(),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
    }
    _card: ClassVar[MethodCard] = MethodCard(family="tree", catalogue=("D1",), engines=("memory",), certificate="none")

    classes_: np.ndarray

    def __init__(
        self,
        *,
        criterion: str = "gini",
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
        class_weight: Mapping[Any, float] | str | None = None,
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
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs

    def _penalty(self) -> float:
        return 0.0

    def _prepare(self, data: ArrayData) -> tuple[Target, np.ndarray]:
        self.classes_, totals, coded = encode_classes(data, self.n_jobs)
        data = cast(ArrayData, coded)
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(f"monotonic_cst: y has {len(self.classes_)} classes; expected two, with one probability")
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        factors = class_weights(self.class_weight, self.classes_, totals)
        if factors is not None:
            weight = weight * factors[data.y]
        return class_target(data.y, len(self.classes_)), weight

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        return known_codes(as_labels(y, n, estimator_name=type(self).__name__), self.classes_)

    def _row_losses(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (values.argmax(axis=1) != y).astype(np.float64)

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes in the leaf of every row, in the order of `classes_`."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the shares."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """The most frequent class in the leaf of every row."""
        return per_block(self._values(X), choose_class, self.classes_)
