"""Forests for classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import fitting
from epicycle.stats._labels import class_weights
from epicycle.tree._classes import class_shares, encode_classes, map_rows
from epicycle.tree.cart._classifier import DecisionTreeClassifier
from epicycle.tree.cart._grow import class_target
from epicycle.tree.forest._base import Forest


class ForestClassifier(ClassifierMixin, Forest):  # type: ignore[misc]  # the mixin is untyped
    """Means of the class shares of classification trees."""

    _docs: ClassVar[dict[str, str]] = {
        "criterion": 'criterion : {"gini", "entropy", "log_loss"}, default={default}\n'
        "    Impurity that splits lower; the last two are the same.",
        "target_parameters": 'class_weight : dict, "balanced", "balanced_subsample" or None, default=None\n'
        '    Factors on the weights of the rows of each class; "balanced" gives all classes the same total,\n'
        '    "balanced_subsample" does so in the sample of every tree.',
        "monotonic_cst": DecisionTreeClassifier._docs["monotonic_cst"],
        "oob_attributes": "oob_score_, oob_decision_function_ : float, ndarray\n"
        "    With `oob_score`: accuracy of the out-of-bag probabilities, and these; NaN for rows that all trees saw.",
    }
    _target = "labels"
    _parameters: ClassVar[dict[str, Domain]] = {
        **Forest._parameters,
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced", "balanced_subsample"))),
    }

    class_weight: Mapping[Any, float] | str | None

    oob_decision_function_: np.ndarray
    oob_score_: float
    _totals_: np.ndarray

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on rows X with labels y."""
        data = self._forest_data(X, y, sample_weight)
        self.classes_, self._totals_, data = encode_classes(data, self.n_jobs)
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(f"monotonic_cst: y has {len(self.classes_)} classes; expected two, with one probability")
        earlier = self._earlier()
        rows = self._read(data, earlier)
        label = rows.y.astype(np.intp)
        balance = self.class_weight == "balanced_subsample"
        factors = None if balance else class_weights(self.class_weight, self.classes_, self._totals_)
        oob = self._fit_trees(
            rows,
            class_target(label, len(self.classes_)),
            earlier,
            factors=None if factors is None else factors[label],
            balance=balance,
        )
        if oob is not None:
            self.oob_decision_function_ = class_shares(oob.mean, len(self.classes_))
            self.oob_score_ = 1.0 - oob.loss(rows.y, len(self.classes_))
        return self

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of every row."""
        return map_rows(self._mean(X), _most_probable, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Return the mean of the class shares in the leaves of all trees, in the order of `classes_`."""
        return map_rows(self._mean(X), class_shares, len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _decision_tree(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(criterion=self.criterion)

    # ------------------------------------------------------------------------------------------- inspection

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(class_shares(outputs, len(self.classes_)).argmax(axis=1) != y, np.float64)


def _most_probable(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    # Of two classes with the same share the first: 1 - p and p are compared as they are rounded.
    return np.asarray(classes[class_shares(values, len(classes)).argmax(axis=1)])


class RandomForestClassifier(ForestClassifier):
    r"""Random forest for classification: the mean of trees on bootstrap samples.

    Every tree is grown on n rows drawn with replacement, and every node is split by the best of a random choice of
    features; the forest predicts the mean of the class shares

    .. math:: p(x) = \frac{1}{T} \sum_t p_t(x) .

    A row is left out by about a third of the trees: their mean predicts it out of bag, which estimates the error on
    new rows. Features are binned (at most 255 bins), unless `max_bins` is None.

    Parameters
    ----------
    %(forest_parameters)s

    Attributes
    ----------
    %(classes_)s
    %(forest_attributes)s

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

    As a random forest, but each candidate feature of a node is split at a threshold drawn uniformly between its
    least and greatest number in the node, and the best of these is taken; by default on all rows. The
    mean of the class shares is

    .. math:: p(x) = \frac{1}{T} \sum_t p_t(x) .

    Thresholds are moved to the next edge of a bin, unless `max_bins` is None.

    Parameters
    ----------
    %(forest_parameters)s

    Attributes
    ----------
    %(classes_)s
    %(forest_attributes)s

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
