"""Forests for classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.stats._labels import class_weights
from epicycle.tree._classes import (
    choose_labels,
    class_shares,
    encode_classes,
    encode_label_columns,
    has_label_columns,
    label_column_weights,
    map_rows,
    refuse_label_columns,
    split_outputs,
)
from epicycle.tree.cart._classifier import DecisionTreeClassifier, check_label_columns, check_monotone_classes
from epicycle.tree.cart._grow import Target, class_target, label_columns_target
from epicycle.tree.forest._base import Forest
from epicycle.tree.forest._grow import OutOfBag


class ForestClassifier(ClassifierMixin, Forest):  # type: ignore[misc]  # the mixin is untyped
    """Means of the class shares of classification trees."""

    _docs: ClassVar[dict[str, str]] = {
        "criterion": 'criterion : {"gini", "entropy", "log_loss"}, default={default}\n'
        "    Impurity that splits lower; the last two are the same.",
        "target_parameters": 'class_weight : dict, list, "balanced", "balanced_subsample" or None, default=None\n'
        '    Factors on the weights of the rows of each class; "balanced" gives all classes the same total,\n'
        '    "balanced_subsample" does so in the sample of every tree. A list has the\n'
        "    factors of each of several label columns.",
        "monotonic_cst": DecisionTreeClassifier._docs["monotonic_cst"],
        "oob_attributes": "oob_score_, oob_decision_function_ : float, ndarray\n"
        "    With `oob_score`: accuracy of the out-of-bag probabilities, and these; NaN for rows that all trees saw.",
    }
    _target = "labels"
    _multi_output = True
    _parameters: ClassVar[dict[str, Domain]] = {
        **Forest._parameters,
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": NoneOr(AnyOf(InstanceOf(dict, list), Choice("balanced", "balanced_subsample"))),
    }

    class_weight: Mapping[Any, float] | list[Any] | str | None

    oob_decision_function_: np.ndarray
    oob_score_: float
    _totals_: np.ndarray

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on rows X with labels y."""
        columns, factors = has_label_columns(y), None
        balance = isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample"
        if columns:
            check_label_columns(self.criterion, self.monotonic_cst)
            self.classes_, codes = encode_label_columns(y, type(self).__name__)
            if self.oob_score and max(len(c) for c in self.classes_) > 2:
                raise DataError(
                    "The type of target cannot be used to compute OOB estimates: y has several columns of more than "
                    "two classes"
                )
            data = self._forest_data(X, codes, sample_weight, label_columns=True)
        else:
            data = self._forest_data(X, y, sample_weight)
            self.classes_, self._totals_, data = encode_classes(data, self.n_jobs)
            check_monotone_classes(self.monotonic_cst, len(self.classes_))
        earlier = self._earlier()
        rows = self._read(data, earlier)
        if columns:
            # Several columns have no common balance in a sample: it is that of all rows.
            factors = label_column_weights("balanced" if balance else self.class_weight, y)
            target, balance = label_columns_target(rows.y, [len(c) for c in self.classes_]), False
        else:
            label = rows.y.astype(np.intp)
            target = class_target(label, len(self.classes_))
            if isinstance(self.class_weight, list):
                raise ParameterError(
                    "class_weight: y has one column; the number of elements in class_weight should match number of "
                    "outputs. Expected a dict"
                )
            weights = None if balance else class_weights(self.class_weight, self.classes_, self._totals_)
            factors = None if weights is None else weights[label]
        oob = self._fit_trees(rows, target, earlier, factors=factors, balance=balance)
        if oob is not None:
            self._score_out_of_bag(oob, rows.y, target)
        return self

    def _score_out_of_bag(self, oob: OutOfBag, y: np.ndarray, target: Target) -> None:
        if isinstance(self.classes_, list):
            # (n, n_classes, n_outputs), as in scikit-learn
            shares = np.stack(split_outputs(oob.mean, self.classes_), axis=2)
        else:
            shares = class_shares(oob.mean, len(self.classes_))
        self.oob_decision_function_ = shares
        self.oob_score_ = 1.0 - oob.loss(y, target)
        if callable(self.oob_score):
            seen = oob.seen
            self.oob_score_ = float(self.oob_score(y[seen], shares[seen].argmax(axis=1)))

    @property
    def n_classes_(self) -> int | list[int]:
        """Number of classes; of several label columns a list."""
        self._check_fitted()
        return [len(c) for c in self.classes_] if isinstance(self.classes_, list) else len(self.classes_)

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of every row."""
        means, classes = self._mean(X), self.classes_
        return map_rows(means, choose_labels if isinstance(classes, list) else _most_probable, classes)

    def predict_proba(self, X: Any) -> Any:
        """Return the mean of the class shares in the leaves of all trees, in the order of `classes_`.

        Of several label columns a list.
        """
        if isinstance(self._fitted_classes(), list):
            return split_outputs(np.asarray(self._mean(X)), self.classes_)
        return map_rows(self._mean(X), class_shares, len(self.classes_))

    def _fitted_classes(self) -> Any:
        self._check_fitted()
        return self.classes_

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(s) for s in shares] if isinstance(shares, list) else np.log(shares)

    def _decision_tree(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(criterion=self.criterion)

    def _responses(self, X: np.ndarray) -> np.ndarray:
        refuse_label_columns(self._fitted_classes(), "this inspection")
        return super()._responses(X)

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

    @stores_arguments
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
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...


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

    @stores_arguments
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
        bootstrap: bool = False,
        max_samples: float | None = None,
        oob_score: Any = False,
        class_weight: Mapping[Any, float] | list[Any] | str | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...
