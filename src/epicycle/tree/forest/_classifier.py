"""Forests for classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.tree._classes import class_shares, split_outputs
from epicycle.tree._parameters import with_defaults
from epicycle.tree.cart._classifier import DecisionTreeClassifier, TreeClassifier
from epicycle.tree.forest._base import Forest


class ForestClassifier(TreeClassifier, Forest):
    """Means of the class shares of classification trees."""

    _docs: ClassVar[dict[str, str]] = {
        "criterion": 'criterion : {"gini", "entropy", "log_loss"}, default={default}\n'
        "    Impurity that splits lower; the last two are the same.",
        "class_weight": 'class_weight : dict, list, "balanced", "balanced_subsample" or None, default=None\n'
        '    Factors on the weights of the rows of each class; "balanced" gives all classes the same total,\n'
        '    "balanced_subsample" does so in the sample of every tree. A list has the\n'
        "    factors of each of several label columns.",
        "monotonic_cst": DecisionTreeClassifier._docs["monotonic_cst"],
        "target_attributes": "%(classes_)s\nn_classes_ : int or list of int\n"
        "    Number of classes; of several label columns a list.\n"
        "oob_score_, oob_decision_function_ : float, ndarray\n"
        "    With `oob_score`: accuracy of the out-of-bag probabilities, and these; NaN for rows that all trees saw.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("forest_attributes",)
    _parameters: ClassVar[dict[str, Domain]] = {
        **Forest._parameters,
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict, list), Choice("balanced", "balanced_subsample"))),
    }

    oob_decision_function_: np.ndarray
    oob_score_: float

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on rows X with labels y."""
        if self._has_all_trees():
            return self
        data, factors = self._encoded_data(X, y, sample_weight)
        columns = isinstance(self.classes_, list)
        if columns and self.oob_score and max(len(c) for c in self.classes_) > 2:
            raise DataError(
                "The type of target cannot be used to compute OOB estimates: y has several columns of more than "
                "two classes"
            )
        rows, earlier = self._start(data, X)
        target, factors = self._class_target(rows.y, factors)
        balance = self._balances_samples() and not columns
        oob = self._fit_trees(rows, target, earlier, factors=factors, balance=balance)
        if oob is not None:
            # Of several label columns (n, n_classes, n_outputs), as in scikit-learn.
            shares = (
                np.stack(split_outputs(oob.mean, self.classes_), axis=2)
                if columns
                else class_shares(oob.mean, len(self.classes_))
            )
            self.oob_decision_function_, self.oob_score_ = shares, 1.0 - oob.loss(rows.y, target)
            if callable(self.oob_score):
                self.oob_score_ = float(self.oob_score(rows.y[oob.seen], shares[oob.seen].argmax(axis=1)))
        return self

    def _decision_tree(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(criterion=self.criterion)


class RandomForestClassifier(ForestClassifier):
    r"""Random forest for classification: the mean of trees on bootstrap samples.

    Every tree is grown on n rows drawn with replacement, and every node is split by the best of a random choice of
    features; the forest predicts the mean of the class shares

    .. math:: p(x) = \frac{1}{T} \sum_t p_t(x) .

    A row is left out by about a third of the trees: their mean predicts it out of bag, which estimates the error on
    new rows. Features are binned (at most 255 bins), unless `max_bins` is None.

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

    @stores_arguments(warm_start=False, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_estimators: int = 100,
        *,
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
        oob_score: Any = False,
        class_weight: Mapping[Any, float] | list[Any] | str | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        **shared: Unpack[SharedArguments],
    ) -> None: ...


class ExtraTreesClassifier(ForestClassifier):
    r"""Extremely randomised trees for classification: the mean of trees with random thresholds.

    As a random forest, but each candidate feature of a node is split at a threshold drawn uniformly between its
    least and greatest number in the node, and the best of these is taken; by default on all rows. The
    mean of the class shares is

    .. math:: p(x) = \frac{1}{T} \sum_t p_t(x) .

    Thresholds are moved to the next edge of a bin, unless `max_bins` is None.

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

    __init__ = with_defaults(RandomForestClassifier.__init__, bootstrap=False)
