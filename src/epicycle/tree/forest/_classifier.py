"""Forests for classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data import Data
from epicycle.data._target import as_labels
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import class_weights
from epicycle.tree._shared import known_codes, per_block
from epicycle.tree.cart._classifier import DecisionTreeClassifier
from epicycle.tree.cart._grow import Target, class_target
from epicycle.tree.cart._targets import encode_classes
from epicycle.tree.cart._tree import Tree
from epicycle.tree.forest._base import Forest
from epicycle.tree.forest._parameters import forest_domains

__all__ = ["ExtraTreesClassifier", "RandomForestClassifier"]


class ForestClassifier(ClassifierMixin, Forest):
    """Means of the class shares of classification trees."""

    _target = "labels"

    classes_: np.ndarray
    _totals_: np.ndarray

    def _encode(self, data: Data) -> Data:
        self.classes_, self._totals_, data = encode_classes(data, self.n_jobs)
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(f"monotonic_cst: y has {len(self.classes_)} classes; expected two, with one probability")
        return data

    def _prepare(self, y: np.ndarray, weight: np.ndarray) -> tuple[Target, np.ndarray | None]:
        label = y.astype(np.intp)
        if self.class_weight == "balanced_subsample":
            return class_target(label, len(self.classes_)), None
        factors = class_weights(self.class_weight, self.classes_, self._totals_)
        return class_target(label, len(self.classes_)), None if factors is None else factors[label]

    def _tree_weight(self, mass: np.ndarray, target: Target) -> np.ndarray:
        if self.class_weight != "balanced_subsample":
            return mass
        label = (target.y[:, 0] if target.labels is None else target.labels).astype(np.intp)
        totals = np.bincount(label, weights=mass, minlength=len(self.classes_))
        present = totals > 0
        factors = np.where(present, mass.sum() / (np.count_nonzero(present) * np.where(present, totals, 1.0)), 0.0)
        return mass * factors[label]

    def _outside_error(self, mean: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean(_shares(mean, len(self.classes_)).argmax(axis=1) != y)) if len(y) else np.nan

    def _finish_outside(self, mean: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        self.oob_decision_function_ = _shares(mean, len(self.classes_))
        self.oob_score_ = 1.0 - self._outside_error(mean[seen], y[seen])

    def _as_tree(self, tree: Tree) -> DecisionTreeClassifier:
        names = ("categories_", "_from_frame_", "n_features_in_", "feature_names_in_", "classes_")
        model = DecisionTreeClassifier(criterion=self.criterion)
        for name in names:
            if name in vars(self):
                setattr(model, name, getattr(self, name))
        model.tree_ = tree
        return model

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        labels = as_labels(y, n, estimator_name=type(self).__name__)
        return known_codes(labels, self.classes_)

    def _row_losses(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (_shares(values, len(self.classes_)).argmax(axis=1) != y).astype(np.float64)

    def predict_proba(self, X: Any) -> Any:
        """The mean of the class shares in the leaves of all trees, in the order of `classes_`."""
        return per_block(self._mean(X), _shares, len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of every row."""
        return per_block(self._mean(X), _most_probable, self.classes_)


def _shares(values: np.ndarray, n_classes: int) -> np.ndarray:
    """Shares of all classes, where two classes were kept as the share of the second."""
    if n_classes == 1:
        return np.ones((len(values), 1))
    return np.column_stack([1.0 - values, values]) if values.shape[1] == 1 else values


def _most_probable(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return choose_class(_shares(values, len(classes)), classes)


class RandomForestClassifier(ForestClassifier):
    r"""Random forest for classification: the mean of trees on bootstrap samples.

    Every tree is grown on n rows drawn with replacement, and every node divides by the best of a random choice of
    features; the forest predicts the mean of the class shares

    .. math:: p(x) = \frac{1}{T} \sum_t p_t(x) .

    A row is left out by about a third of the trees: their mean predicts it out of bag, which estimates the error on
    new rows. Features are cut into at most 255 bins, unless `max_bins` is None.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What nodes are divided by; the last two are the same.
    max_depth : int or None, default=None
        Splits on the way to a leaf at most.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Rows of a node that is split, and of a leaf, at least; a float is a share of the rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight of its tree that a leaf has at least.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Features that a node looks at, drawn anew for each; a float is a share. None means all.
    max_leaf_nodes : int or None, default=None
        Leaves of a tree at most; it then grows where most is gained.
    min_impurity_decrease : float, default=0.0
        A split has to lower the mean impurity of the rows of its tree by this.
    leaf_cost : float, default=0.0
        Splits that do not lower the sum of losses of their tree by more than this are not made.
    bootstrap : bool, default=True
        Whether every tree learns from rows drawn with replacement.
    max_samples : int, float or None, default=None
        Rows of such a sample, or a share; None means as many as there are. Without `bootstrap`, rows are drawn without
        replacement.
    oob_score : bool, default=False
        Whether to predict every row by the trees that did not see it.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the weights of the rows of each class; "balanced" gives all classes the same total,
        "balanced_subsample" does so in the sample of every tree.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning of every tree.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise. For two
        classes, and the probability of the second.
    max_bins : int or None, default=255
        Bins that features are cut into, at quantiles; None tries every distinct number, which takes longer. Absolute
        error always does, and very sparse matrices.
    categorical_features : "from_dtype", None, or list of names, numbers or truth values, default="from_dtype"
        Columns that are divided by sets of levels. "from_dtype" takes the columns of a frame that have a categorical
        type. Levels are learnt and later found by value; what the 255 most frequent do not cover counts as missing.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do in prediction with levels that the fit did not see.
    warm_start : bool, default=False
        Whether another `fit` adds trees to the earlier ones, up to `n_estimators`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the samples of rows, features and thresholds.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every tree.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    trees_ : dict of ndarray
        The trees as arrays; see :mod:`epicycle.tree.forest._arrays`. ``tree(t)`` gives one as a decision tree.
    estimators_ : list
        All trees as fitted decision trees, made anew when asked for.
    categories_ : dict of ndarray
        Levels of the columns of categories, by the number of the column.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the decrease of impurity, as the mean over trees.
    oob_score_, oob_decision_function_ : float, ndarray
        With `oob_score`: accuracy of the out-of-bag probabilities, and these; NaN for rows that all trees saw.
    certificate_ : Certificate
        None: trees are greedy. It says what each split is the best of.
    history_ : History
        After every tree its leaves and depth, and as objective the out-of-bag error so far (with `oob_score`) or the
        mean impurity of its leaves.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.94)
    True
    """

    _random_splits = False
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced", "balanced_subsample"))),
        **forest_domains(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D2",), engines=("memory", "files"), certificate="none"
    )

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        bootstrap: bool = True,
        max_samples: float | None = None,
        oob_score: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.leaf_cost = leaf_cost
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class ExtraTreesClassifier(ForestClassifier):
    r"""Extremely randomised trees for classification: the mean of trees with random thresholds.

    As a random forest, but each feature that a node looks at is divided at a threshold drawn uniformly between its
    least and greatest number in the node, and the best of these is taken; by default on all rows. The
    mean of the class shares is

    .. math:: p(x) = \frac{1}{T} \sum_t p_t(x) .

    Thresholds are moved to the next cut between bins, unless `max_bins` is None.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        What nodes are divided by; the last two are the same.
    max_depth : int or None, default=None
        Splits on the way to a leaf at most.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Rows of a node that is split, and of a leaf, at least; a float is a share of the rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight of its tree that a leaf has at least.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Features that a node looks at, drawn anew for each; a float is a share. None means all.
    max_leaf_nodes : int or None, default=None
        Leaves of a tree at most; it then grows where most is gained.
    min_impurity_decrease : float, default=0.0
        A split has to lower the mean impurity of the rows of its tree by this.
    leaf_cost : float, default=0.0
        Splits that do not lower the sum of losses of their tree by more than this are not made.
    bootstrap : bool, default=False
        Whether every tree learns from rows drawn with replacement.
    max_samples : int, float or None, default=None
        Rows of such a sample, or a share; None means as many as there are. Without `bootstrap`, rows are drawn without
        replacement.
    oob_score : bool, default=False
        Whether to predict every row by the trees that did not see it.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Factors on the weights of the rows of each class; "balanced" gives all classes the same total,
        "balanced_subsample" does so in the sample of every tree.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning of every tree.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise. For two
        classes, and the probability of the second.
    max_bins : int or None, default=255
        Bins that features are cut into, at quantiles; None tries every distinct number, which takes longer. Absolute
        error always does, and very sparse matrices.
    categorical_features : "from_dtype", None, or list of names, numbers or truth values, default="from_dtype"
        Columns that are divided by sets of levels. "from_dtype" takes the columns of a frame that have a categorical
        type. Levels are learnt and later found by value; what the 255 most frequent do not cover counts as missing.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do in prediction with levels that the fit did not see.
    warm_start : bool, default=False
        Whether another `fit` adds trees to the earlier ones, up to `n_estimators`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the samples of rows, features and thresholds.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every tree.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    trees_ : dict of ndarray
        The trees as arrays; see :mod:`epicycle.tree.forest._arrays`. ``tree(t)`` gives one as a decision tree.
    estimators_ : list
        All trees as fitted decision trees, made anew when asked for.
    categories_ : dict of ndarray
        Levels of the columns of categories, by the number of the column.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the decrease of impurity, as the mean over trees.
    oob_score_, oob_decision_function_ : float, ndarray
        With `oob_score`: accuracy of the out-of-bag probabilities, and these; NaN for rows that all trees saw.
    certificate_ : Certificate
        None: trees are greedy. It says what each split is the best of.
    history_ : History
        After every tree its leaves and depth, and as objective the out-of-bag error so far (with `oob_score`) or the
        mean impurity of its leaves.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import ExtraTreesClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ExtraTreesClassifier(oob_score=True, bootstrap=True, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.94)
    True
    """

    _random_splits = True
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced", "balanced_subsample"))),
        **forest_domains(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D2",), engines=("memory", "files"), certificate="none"
    )

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        bootstrap: bool = False,
        max_samples: float | None = None,
        oob_score: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.leaf_cost = leaf_cost
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
