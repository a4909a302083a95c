"""Regression trees."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.tree import DecisionTreeRegressor as _Peer

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.tree._base import check_positive_weight
from epicycle.tree._parameters import plain_criterion, warns_of_friedman_mse
from epicycle.tree.cart._base import DecisionTree
from epicycle.tree.cart._grow import Target, number_target


class TreeRegressor(RegressorMixin):  # type: ignore[misc]  # the mixin is untyped
    """Regression by the values of leaves: checks of targets, and predictions."""

    _docs: ClassVar[dict[str, str]] = {"fit_y": "%(targets)s"}
    _target: ClassVar[Literal["none", "numeric", "labels"]] = "numeric"
    _multi_output = True

    _vector_: bool

    def _check_columns(self: Any, data: Data) -> None:
        """Note the shape of y, and raise where several columns are not supported."""
        self._vector_ = data.target_is_vector
        if self.monotonic_cst is not None and data.n_targets > 1:
            raise DataError(
                f"monotonic_cst: y has {data.n_targets} columns; expected one. "
                "Monotonicity constraints are not supported with multiple output"
            )

    def _number_target(self: Any, y: np.ndarray, weight: np.ndarray, l2: float = 0.0) -> Target:
        """The target; raises where the Poisson deviance is not defined: numbers below zero, or all zero."""
        criterion, there = plain_criterion(self.criterion), y[weight > 0]
        if criterion == "poisson" and (there < 0).any():
            raise DataError(
                "y: Some value(s) of y are negative which is not allowed for Poisson regression. criterion='poisson' "
                f"takes targets >= 0, got {there.min():g}"
            )
        if criterion == "poisson" and (there.reshape(len(there), -1).sum(axis=0) == 0).any():
            raise DataError(
                "y: Sum of y is not strictly positive which is necessary for Poisson regression. criterion='poisson' "
                "needs a positive target; all are zero"
            )
        return number_target(y, weight, criterion, l2)

    def predict(self: Any, X: Any) -> Any:
        """Predict the mean over trees of the value of each row's leaf, (n_samples,) or (n_samples, n_outputs)."""
        values = self._mean(X)
        return values[:, 0] if self._vector_ else values

    def _row_losses(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.mean((outputs - y.reshape(len(y), -1)) ** 2, axis=1))


class DecisionTreeRegressor(TreeRegressor, DecisionTree):
    r"""Regression tree, grown by exact search (CART).

    The prediction is constant in each of M boxes, :math:`f(x) = \sum_m c_m 1(x \in R_m)`. Boxes are divided in two,
    where a threshold on one feature, or a set of levels, lowers

    .. math:: L = \sum_i w_i (y_i - f(x_i))^2 + \gamma \sum_m c_m^2 + \lambda M

    most, until none does (with :math:`\lambda = \gamma = 0`: until boxes are pure, or a limit is met). The best
    constants are :math:`c_m = \sum_{i \in m} w_i y_i / (\gamma + \sum_{i \in m} w_i)`. Every threshold between two
    distinct numbers of the node is tried. Missing values go to the side where more is gained.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson", "friedman_mse"}, default="squared_error"
        Loss that splits minimise; leaves of "absolute_error" hold medians. "poisson" is half the deviance.
        "friedman_mse" is an outdated name of "squared_error".
    leaf_l2 : float, default=0.0
        :math:`\gamma`, for squared error.

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

    _parameters: ClassVar[dict[str, Domain]] = {
        **DecisionTree._parameters,
        "criterion": Choice("squared_error", "absolute_error", "poisson", "friedman_mse"),
        "leaf_l2": Real(0),
    }

    @warns_of_friedman_mse
    @stores_arguments(random_state=None, n_jobs=None)
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
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        leaf_cost: float = 0.0,
        leaf_l2: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow a tree on rows X with targets y, and prune it."""
        if self.leaf_l2 and plain_criterion(self.criterion) != "squared_error":
            raise ParameterError(f"leaf_l2={self.leaf_l2:g} is for criterion='squared_error', not {self.criterion!r}")
        data = self._in_memory(self._training_data(X, y, sample_weight), X)
        self._check_columns(data)
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        check_positive_weight(weight)
        l2 = float(self.leaf_l2)
        return self._fit_tree(data, self._number_target(np.asarray(data.y), weight, l2), weight, l2)


_Peer.register(DecisionTreeRegressor)
