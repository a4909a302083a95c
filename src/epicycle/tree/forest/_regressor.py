"""Forests for regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data import Data
from epicycle.data._target import as_numeric_target
from epicycle.tree.cart._grow import Target, number_target
from epicycle.tree.cart._regressor import DecisionTreeRegressor, check_numbers
from epicycle.tree.cart._tree import Tree
from epicycle.tree.forest._base import Forest
from epicycle.tree.forest._leaves import LeafSamples, quantiles_of
from epicycle.tree.forest._parameters import forest_domains

__all__ = ["ExtraTreesRegressor", "RandomForestRegressor"]


class ForestRegressor(RegressorMixin, Forest):
    """Means of the values of regression trees."""

    _target = "numeric"

    _vector_: bool
    _leaf_samples_: dict[str, np.ndarray]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _encode(self, data: Data) -> Data:
        self._vector_ = data.target_is_vector
        if data.n_targets > 1:
            if self.monotonic_cst is not None:
                raise DataError(f"monotonic_cst: y has {data.n_targets} columns; expected one")
            if self.keep_leaf_values:
                raise DataError(f"keep_leaf_values: y has {data.n_targets} columns; expected one")
        if self.keep_leaf_values and self.ccp_alpha > 0:
            raise ParameterError("keep_leaf_values=True is for trees that are not pruned; expected ccp_alpha=0")
        return data

    def _prepare(self, y: np.ndarray, weight: np.ndarray) -> tuple[Target, np.ndarray | None]:
        check_numbers(y, weight, self.criterion)
        return number_target(y, weight, self.criterion, 0.0), None

    def _tree_weight(self, mass: np.ndarray, target: Target) -> np.ndarray:
        return mass

    def _outside_error(self, mean: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean((mean - y.reshape(len(y), -1)) ** 2)) if len(y) else np.nan

    def _finish_outside(self, mean: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        from sklearn.metrics import r2_score

        self.oob_prediction_ = mean[:, 0] if self._vector_ else mean
        self.oob_score_ = float(r2_score(y[seen], mean[seen])) if np.count_nonzero(seen) > 1 else float("nan")

    def _leaf_store(self, y: np.ndarray, first: int, before: Mapping[str, Any]) -> LeafSamples | None:
        if not self.keep_leaf_values:
            return None
        if first and (before.get("_leaf_samples_") is None or len(before["_leaf_samples_"]["y"]) != len(y)):
            raise ParameterError(
                "keep_leaf_values=True: the trees that warm_start goes on with were grown without it, or on other rows"
            )
        return LeafSamples(y.ravel(), before.get("_leaf_samples_"))

    def _as_tree(self, tree: Tree) -> DecisionTreeRegressor:
        names = ("categories_", "_from_frame_", "n_features_in_", "feature_names_in_", "_vector_")
        model = DecisionTreeRegressor(criterion=self.criterion)
        for name in names:
            if name in vars(self):
                setattr(model, name, getattr(self, name))
        model.tree_ = tree
        return model

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        return as_numeric_target(y, n, multi_output=True, estimator_name=type(self).__name__)

    def _row_losses(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.mean((values - y.reshape(len(y), -1)) ** 2, axis=1)

    def predict(self, X: Any) -> Any:
        """The mean of the trees for every row, (n_samples,) or (n_samples, n_outputs)."""
        values = self._mean(X)
        return values[:, 0] if self._vector_ else values

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of y given x, from the training rows that share leaves with x; needs `keep_leaf_values`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
        """
        levels = np.atleast_1d(np.asarray(quantiles, np.float64))
        if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
            raise ParameterError(f"quantiles={quantiles!r:.60}; expected numbers between 0 and 1")
        self._check_fitted()
        if not hasattr(self, "_leaf_samples_"):
            raise NotFittedError(f"{type(self).__name__} kept no targets of its leaves; fit with keep_leaf_values=True")
        return quantiles_of(self.apply(X), self.trees_["roots"], self._leaf_samples_, levels)


class RandomForestRegressor(ForestRegressor):
    r"""Random forest for regression: the mean of trees on bootstrap samples.

    Every tree is grown on n rows drawn with replacement, and every node divides by the best of a random choice of
    features; the forest predicts the mean

    .. math:: f(x) = \frac{1}{T} \sum_t f_t(x) .

    A row is left out by about a third of the trees: their mean predicts it out of bag, which estimates the error on
    new rows. Features are cut into at most 255 bins, unless `max_bins` is None.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        What nodes are divided by; leaves of "absolute_error" hold medians.
    max_depth : int or None, default=None
        Splits on the way to a leaf at most.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Rows of a node that is split, and of a leaf, at least; a float is a share of the rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight of its tree that a leaf has at least.
    max_features : int, float, "sqrt", "log2" or None, default=1.0
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
    keep_leaf_values : bool, default=False
        Whether to keep the targets of the leaves, which `predict_quantiles` needs.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning of every tree.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise. For one output.
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
    trees_ : dict of ndarray
        The trees as arrays; see :mod:`epicycle.tree.forest._arrays`. ``tree(t)`` gives one as a decision tree.
    estimators_ : list
        All trees as fitted decision trees, made anew when asked for.
    categories_ : dict of ndarray
        Levels of the columns of categories, by the number of the column.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the decrease of impurity, as the mean over trees.
    oob_score_, oob_prediction_ : float, ndarray
        With `oob_score`: R squared of the out-of-bag predictions, and these; NaN for rows that all trees saw.
    certificate_ : Certificate
        None: trees are greedy. It says what each split is the best of.
    history_ : History
        After every tree its leaves and depth, and as objective the out-of-bag error so far (with `oob_score`) or the
        mean impurity of its leaves.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(oob_score=True, min_samples_leaf=5, random_state=0).fit(X, y)
    >>> bool(0.40 < model.oob_score_ < 0.50)
    True
    """

    _random_splits = False
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "criterion": Choice("squared_error", "absolute_error", "poisson"),
        "keep_leaf_values": Boolean(),
        **forest_domains(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D2",), engines=("memory", "files"), certificate="none"
    )

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        bootstrap: bool = True,
        max_samples: float | None = None,
        oob_score: bool = False,
        keep_leaf_values: bool = False,
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
        self.keep_leaf_values = keep_leaf_values
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class ExtraTreesRegressor(ForestRegressor):
    r"""Extremely randomised trees for regression: the mean of trees with random thresholds.

    As a random forest, but each feature that a node looks at is divided at a threshold drawn uniformly between its
    least and greatest number in the node, and the best of these is taken; by default on all rows. The mean is

    .. math:: f(x) = \frac{1}{T} \sum_t f_t(x) .

    Thresholds are moved to the next cut between bins, unless `max_bins` is None.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        What nodes are divided by; leaves of "absolute_error" hold medians.
    max_depth : int or None, default=None
        Splits on the way to a leaf at most.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Rows of a node that is split, and of a leaf, at least; a float is a share of the rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight of its tree that a leaf has at least.
    max_features : int, float, "sqrt", "log2" or None, default=1.0
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
    keep_leaf_values : bool, default=False
        Whether to keep the targets of the leaves, which `predict_quantiles` needs.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning of every tree.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise. For one output.
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
    trees_ : dict of ndarray
        The trees as arrays; see :mod:`epicycle.tree.forest._arrays`. ``tree(t)`` gives one as a decision tree.
    estimators_ : list
        All trees as fitted decision trees, made anew when asked for.
    categories_ : dict of ndarray
        Levels of the columns of categories, by the number of the column.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every feature in the decrease of impurity, as the mean over trees.
    oob_score_, oob_prediction_ : float, ndarray
        With `oob_score`: R squared of the out-of-bag predictions, and these; NaN for rows that all trees saw.
    certificate_ : Certificate
        None: trees are greedy. It says what each split is the best of.
    history_ : History
        After every tree its leaves and depth, and as objective the out-of-bag error so far (with `oob_score`) or the
        mean impurity of its leaves.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreesRegressor(oob_score=True, min_samples_leaf=5, bootstrap=True, random_state=0).fit(X, y)
    >>> bool(0.40 < model.oob_score_ < 0.50)
    True
    """

    _random_splits = True
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "criterion": Choice("squared_error", "absolute_error", "poisson"),
        "keep_leaf_values": Boolean(),
        **forest_domains(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D2",), engines=("memory", "files"), certificate="none"
    )

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        bootstrap: bool = False,
        max_samples: float | None = None,
        oob_score: bool = False,
        keep_leaf_values: bool = False,
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
        self.keep_leaf_values = keep_leaf_values
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
