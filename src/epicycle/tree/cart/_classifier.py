"""Classification trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import class_weights
from epicycle.tree._classes import encode_classes, map_rows, second_of_two
from epicycle.tree._parameters import CLASS_WEIGHT
from epicycle.tree.cart._base import DecisionTree
from epicycle.tree.cart._grow import class_target


class DecisionTreeClassifier(ClassifierMixin, DecisionTree):  # type: ignore[misc]  # the mixin is untyped
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
    %(growth_parameters)s
    %(table_parameters)s

    Attributes
    ----------
    %(classes_)s
    %(tree_attributes)s

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
    _docs: ClassVar[dict[str, str]] = {
        "monotonic_cst": DecisionTree._docs["monotonic_cst"]
        + "\n    For two classes, and the probability of the second.",
    }
    _parameters: ClassVar[dict[str, Domain]] = {
        **DecisionTree._parameters,
        "criterion": Choice("gini", "entropy", "log_loss"),
        "class_weight": CLASS_WEIGHT,
    }

    @stores_arguments
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
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow a tree on rows X with labels y, and prune it."""
        self.classes_, totals, data = encode_classes(self._memory_data(X, y, sample_weight), self.n_jobs)
        assert isinstance(data, ArrayData)
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(f"monotonic_cst: y has {len(self.classes_)} classes; expected two, with one probability")
        codes, weight = np.asarray(data.y), np.ones(data.n_rows) if data.weight is None else data.weight
        factors = class_weights(self.class_weight, self.classes_, totals)
        if factors is not None:
            weight = weight * factors[codes]
        return self._fit_tree(data, class_target(codes, len(self.classes_)), weight)

    def predict(self, X: Any) -> Any:
        """Predict the most frequent class in the leaf of every row."""
        return map_rows(self._values(X), choose_class, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Return the shares of the classes in the leaf of every row, in the order of `classes_`."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the shares."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    # ------------------------------------------------------------------------------------------- inspection

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(outputs.argmax(axis=1) != y, np.float64)

    def _responses(self, X: np.ndarray) -> np.ndarray:
        return second_of_two(self._raw_outputs(X))

    def _expected_outputs(self, columns: list[int], points: np.ndarray) -> np.ndarray:
        return second_of_two(super()._expected_outputs(columns, points))
