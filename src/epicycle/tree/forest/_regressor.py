"""Forests for regression."""

from __future__ import annotations

from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.tree._parameters import plain_criterion, warns_of_friedman_mse, with_defaults
from epicycle.tree.cart._regressor import DecisionTreeRegressor, TreeRegressor
from epicycle.tree.forest._arrays import LeafSamples, quantiles_of
from epicycle.tree.forest._base import Forest


class ForestRegressor(TreeRegressor, Forest):
    """Means of the values of regression trees."""

    _docs: ClassVar[dict[str, str]] = {
        "criterion": 'criterion : {"squared_error", "absolute_error", "poisson", "friedman_mse"}, default={default}\n'
        '    Loss that splits lower; leaves of "absolute_error" hold medians. The last is the first by another name.',
        "keep_leaf_values": "keep_leaf_values : bool, default=False\n"
        "    Whether to store the targets of the leaves, which `predict_quantiles` needs.",
        "target_attributes": "oob_score_, oob_prediction_ : float, ndarray\n"
        "    With `oob_score`: R squared of the out-of-bag predictions, and these; NaN for rows that all trees saw.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("forest_attributes",)
    _parameters: ClassVar[dict[str, Domain]] = {
        **Forest._parameters,
        "criterion": Choice("squared_error", "absolute_error", "poisson", "friedman_mse"),
        "keep_leaf_values": Boolean(),
    }

    keep_leaf_values: bool

    oob_prediction_: np.ndarray
    oob_score_: float

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on rows X with targets y."""
        if self._has_all_trees():
            return self
        data = self._training_data(X, y, sample_weight)
        self._check_columns(data)
        if self.keep_leaf_values and data.n_targets > 1:
            raise DataError(f"keep_leaf_values: y has {data.n_targets} columns; expected one")
        if self.keep_leaf_values and self.ccp_alpha > 0:
            raise ParameterError("keep_leaf_values=True is for trees that are not pruned; expected ccp_alpha=0")
        rows, earlier = self._start(data, X)
        leaf_samples = self._leaf_samples(rows.y, earlier) if self.keep_leaf_values else None
        target = self._number_target(rows.y, rows.weight)
        oob = self._fit_trees(rows, target, earlier, leaf_samples=leaf_samples)
        if oob is not None:
            from sklearn.metrics import r2_score

            mean, seen = oob.mean, oob.seen
            self.oob_prediction_ = mean[:, 0] if self._vector_ else mean
            self.oob_score_ = float(r2_score(rows.y[seen], mean[seen])) if np.count_nonzero(seen) > 1 else float("nan")
            if callable(self.oob_score):
                self.oob_score_ = float(self.oob_score(rows.y[seen], self.oob_prediction_[seen]))
        return self

    def _leaf_samples(self, y: np.ndarray, earlier: dict[str, Any]) -> LeafSamples:
        samples = earlier.get("_leaf_samples_")
        if "trees_" in earlier and (samples is None or len(samples["y"]) != len(y)):
            raise ParameterError(
                "keep_leaf_values=True: the trees that warm_start goes on with were grown without it, or on other rows"
            )
        return LeafSamples(y.ravel(), samples)

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Predict quantiles of y given x, from the training rows in the leaves of x; needs `keep_leaf_values`.

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

    def _decision_tree(self) -> DecisionTreeRegressor:
        return DecisionTreeRegressor(criterion=plain_criterion(self.criterion))


class RandomForestRegressor(ForestRegressor):
    r"""Random forest for regression: the mean of trees on bootstrap samples.

    Every tree is grown on n rows drawn with replacement, and every node is split by the best of a random choice of
    features; the forest predicts the mean

    .. math:: f(x) = \frac{1}{T} \sum_t f_t(x) .

    A row is left out by about a third of the trees: their mean predicts it out of bag, which estimates the error on
    new rows. Features are binned (at most 255 bins), unless `max_bins` is None.

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

    @warns_of_friedman_mse
    @stores_arguments(warm_start=False, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_estimators: int = 100,
        *,
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
        oob_score: Any = False,
        keep_leaf_values: bool = False,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
        **shared: Unpack[SharedArguments],
    ) -> None: ...


class ExtraTreesRegressor(ForestRegressor):
    r"""Extremely randomised trees for regression: the mean of trees with random thresholds.

    As a random forest, but each candidate feature of a node is split at a threshold drawn uniformly between its
    least and greatest number in the node, and the best of these is taken; by default on all rows. The mean is

    .. math:: f(x) = \frac{1}{T} \sum_t f_t(x) .

    Thresholds are moved to the next edge of a bin, unless `max_bins` is None.

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

    __init__ = with_defaults(RandomForestRegressor.__init__, bootstrap=False)
