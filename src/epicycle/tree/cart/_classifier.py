"""Classification trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.tree import DecisionTreeClassifier as _Peer

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.stats._labels import class_weights
from epicycle.tree._classes import (
    choose_labels,
    class_shares,
    encode_classes,
    encode_label_columns,
    has_label_columns,
    label_column_weights,
    map_rows,
    most_probable,
    refuse_label_columns,
    second_of_two,
    split_outputs,
)
from epicycle.tree._parameters import CLASS_WEIGHT
from epicycle.tree.cart._base import DecisionTree
from epicycle.tree.cart._grow import Target, class_target, label_columns_target


class TreeClassifier(ClassifierMixin):  # type: ignore[misc]  # the mixin is untyped
    """Classification by shares of classes in leaves: targets of one or several label columns, and predictions.

    `_mean` of the model gives the shares of all classes, or of the second of two alone.
    """

    _target: ClassVar[Literal["none", "numeric", "labels"]] = "labels"
    _multi_output = True

    classes_: Any

    def _encoded_data(self: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Data, np.ndarray | None]:
        """(training data with codes for labels, factors by class or, of several label columns, by row).

        Sets `classes_`.
        """
        if has_label_columns(y):
            if self.monotonic_cst is not None:
                raise DataError("monotonic_cst: Monotonicity constraints are not supported with multiple output y")
            self.classes_, codes = encode_label_columns(y, type(self).__name__)
            # Several columns have no common balance in the sample of a tree: it is that of all rows.
            asked = "balanced" if self._balances_samples() else self.class_weight
            return self._training_data(X, codes, sample_weight, label_columns=True), label_column_weights(asked, y)
        data = self._training_data(X, y, sample_weight)
        # As in scikit-learn, a class without weight is a class, with probability zero.
        self.classes_, totals, data = encode_classes(data, self.n_jobs, weightless=True)
        totals = np.where(totals > 0, totals, 1.0)
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(
                f"monotonic_cst: y has {len(self.classes_)} classes; expected two, with one probability. "
                "Monotonicity constraints are not supported with multiclass classification"
            )
        if isinstance(self.class_weight, list):
            raise ParameterError(
                "class_weight: y has one column; the number of elements in class_weight should match number of "
                "outputs. Expected a dict"
            )
        return data, None if self._balances_samples() else class_weights(self.class_weight, self.classes_, totals)

    def _balances_samples(self: Any) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample"

    def _class_target(self, codes: np.ndarray, factors: np.ndarray | None) -> tuple[Target, np.ndarray | None]:
        """(the target of encoded labels, factors on the weights of the rows)."""
        if isinstance(self.classes_, list):
            return label_columns_target(codes, [len(c) for c in self.classes_]), factors
        label = codes.astype(np.intp)
        return class_target(label, len(self.classes_)), None if factors is None else factors[label]

    @property
    def n_classes_(self: Any) -> int | list[int]:
        """Number of classes; of several label columns a list."""
        self._check_fitted()
        return [len(c) for c in self.classes_] if isinstance(self.classes_, list) else len(self.classes_)

    def predict(self: Any, X: Any) -> Any:
        """Predict the most probable class of every row."""
        shares, classes = self._mean(X), self.classes_
        return map_rows(shares, choose_labels if isinstance(classes, list) else most_probable, classes)

    def predict_proba(self: Any, X: Any) -> Any:
        """Return the shares of the classes in the leaf of every row, as the mean over trees; columns as in `classes_`.

        Of several label columns a list.
        """
        shares, classes = self._mean(X), self.classes_
        if isinstance(classes, list):
            return split_outputs(np.asarray(shares), classes)
        return map_rows(shares, class_shares, len(classes))

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(s) for s in shares] if isinstance(shares, list) else np.log(shares)

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(class_shares(outputs, len(self.classes_)).argmax(axis=1) != y, np.float64)

    def _responses(self: Any, X: np.ndarray) -> np.ndarray:
        refuse_label_columns(self.classes_, "this inspection")
        return second_of_two(self._raw_outputs(X))

    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        refuse_label_columns(self.classes_, "this inspection")
        return second_of_two(super()._expected_outputs(columns, points))


class DecisionTreeClassifier(TreeClassifier, DecisionTree):
    r"""Classification tree, grown by exact search (CART).

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

    Attributes
    ----------
    %(classes_)s
    n_classes_ : int or list of int
        Number of classes; of several label columns a list.

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

    _docs: ClassVar[dict[str, str]] = {
        "monotonic_cst": DecisionTree._docs["monotonic_cst"]
        + "\n    For two classes, and the probability of the second.",
    }
    _parameters: ClassVar[dict[str, Domain]] = {
        **DecisionTree._parameters,
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": CLASS_WEIGHT,
    }

    @stores_arguments(random_state=None, n_jobs=None)
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
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        class_weight: Mapping[Any, float] | list[Any] | str | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow a tree on rows X with labels y, and prune it."""
        data, factors = self._encoded_data(X, y, sample_weight)
        data = self._in_memory(data, X)
        target, factors = self._class_target(np.asarray(data.y), factors)
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        return self._fit_tree(data, target, weight if factors is None else weight * factors)


_Peer.register(DecisionTreeClassifier)
