"""Gradient boosting under the names and defaults of scikit-learn's HistGradientBoosting classes.

The engine is that of :class:`GradientBoostingClassifier` and :class:`GradientBoostingRegressor`; what they have as
further parameters stands here as constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.metrics import check_scoring

from epicycle.core._arguments import SharedArguments
from epicycle.core._docs import SHARED_DOCS, entries_of
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.data._categories import Levels, column_label, is_table, learn_levels
from epicycle.tree._parameters import TREE_DOCS
from epicycle.tree.boosting._base import GradientBoosting
from epicycle.tree.boosting._classifier import GradientBoostingClassifier
from epicycle.tree.boosting._parameters import BOOSTING_DOMAINS
from epicycle.tree.boosting._regressor import GradientBoostingRegressor
from epicycle.tree.boosting._stopping import Stopping

# "auto" stops early where there are more rows: then a validation set costs little, and rounds cost much.
_MANY_ROWS = 10_000

#: Parameters that have the domains of the other boosting classes.
_SAME = ("learning_rate", "max_leaf_nodes", "max_depth", "l2_regularization", "max_bins", "categorical_features")
_DOMAINS: dict[str, Domain] = {
    **{name: BOOSTING_DOMAINS[name] for name in (*_SAME, "monotonic_cst", "interaction_cst", "tol")},
    "min_samples_leaf": Integer(1),
    "max_features": Real(0, 1, inclusive=(False, True)),
    "early_stopping": AnyOf(Choice("auto"), Boolean()),
    "scoring": NoneOr(AnyOf(InstanceOf(str), Callable())),
    "validation_fraction": NoneOr(AnyOf(Integer(1), Real(0, 1, inclusive=False))),
    "n_iter_no_change": Integer(1),
}

_PARAMETERS = r"""learning_rate : float, default=0.1
    :math:`\eta`.
max_iter : int, default=100
    Number of rounds.
max_leaf_nodes : int or None, default=31
    Maximum number of leaves of a tree.
max_depth : int or None, default=None
    Maximum depth of a tree.
min_samples_leaf : int, default=20
    Minimum number of rows of a leaf.
l2_regularization : float, default=0.0
    :math:`\lambda`.
max_features : float, default=1.0
    Share of the features that a tree may use, drawn anew for every round.
max_bins : int, default=255
    Maximum number of bins of a feature, or of its levels, beside one for missing values.
warm_start : bool, default=False
    Whether another `fit` adds rounds to the earlier ones, up to `max_iter`.
early_stopping : "auto" or bool, default="auto"
    Whether the fit ends when `n_iter_no_change` rounds bring no improvement; "auto" does so for more than 10,000 rows.
    All rounds up to there are kept.
scoring : str, callable or None, default="loss"
    What has to improve: the loss, a score by name or as a function, or with None that of ``score``.
validation_fraction : int, float or None, default=0.1
    Rows that are held out as validation set, as a number or a share, where `fit` is given no `X_val`: class by class,
    and up to a million rows those that scikit-learn's class holds out with the same `random_state`. None looks at the
    training rows.
n_iter_no_change : int, default=10
    Number of rounds without improvement.
tol : float, default=1e-7
    Smallest improvement that counts.
random_state : int, Generator, RandomState or None, default=None
    Seed of the samples of features, of the validation set, and of the rows that bins are made of where there are more
    than 200,000."""

_ATTRIBUTES = """trees_ : dict of ndarray
    The trees as arrays; see :mod:`epicycle.tree._ensemble`.
n_iter_, n_estimators_ : int
    Number of rounds.
n_trees_per_iteration_ : int
    Trees of a round: one for each class where there are more than two.
do_early_stopping_ : bool
    Whether early stopping was in force.
train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
    With early stopping, the negative loss or the score of the training rows and of the validation set before the first
    round and after each; empty where there is none.
is_categorical_ : ndarray of shape (n_features,), or None
    Mask of the columns of categories.
%(boosting_evidence)s"""


class HistGradientBoosting(GradientBoosting):
    """The engine with the names of scikit-learn's classes; the rest of its parameters are constants."""

    _docs: ClassVar[dict[str, str]] = {
        **entries_of(_PARAMETERS),
        "categorical_features": TREE_DOCS["categorical_features"]
        + "\n    At most `max_bins` levels; negative numbers are missing values.",
        "verbose": SHARED_DOCS["verbose"],
        "boosting_attributes": _ATTRIBUTES,
    }
    _rounds_name = "max_iter"
    _prints_rounds = False

    max_iter: int
    early_stopping: bool | str
    scoring: Any
    do_early_stopping_: bool
    _stopping_: dict[str, list[float]]

    subsample = 1.0
    sampling = "uniform"
    order = 2
    criterion = "deprecated"
    init = None
    min_samples_split = 2
    min_impurity_decrease = 0.0
    ccp_alpha = 0.0
    min_child_weight = 1e-3
    min_split_gain = 0.0
    categorical_smoothing = 20.0
    handle_unknown = "missing"
    keep_best = False
    n_jobs = None

    @property
    def n_estimators(self) -> int:  # type: ignore[override]  # the same number under its other name
        """Number of rounds: `max_iter`."""
        return self.max_iter

    def _check_fit(self, X_val: Any, y_val: Any) -> None:
        super()._check_fit(X_val, y_val)
        if X_val is not None and self.early_stopping is False:
            raise ParameterError(
                "X_val and y_val are passed to fit while at the same time early_stopping=False; expected True or 'auto'"
            )

    def _learn_levels(self, X: Any, columns: list[int]) -> Levels:
        levels: Levels = {}
        for j, found in learn_levels(X, columns, type(self).__name__).items():
            levels[j] = found if found.dtype.kind in "OUSb" else found[found >= 0]
            if len(levels[j]) > self.max_bins:
                label = column_label(X, j)
                raise DataError(
                    f"X: Categorical feature {label if is_table(X) else f'at index {label}'} is expected to have a "
                    f"cardinality <= {self.max_bins} but actually has a cardinality of {len(levels[j])}."
                )
        return levels

    def _stopping(self, data: Data, given: Data | None) -> Stopping:
        wanted = self.early_stopping
        if wanted == "auto":
            wanted = given is not None or data.n_rows is None or data.n_rows > _MANY_ROWS
        self.do_early_stopping_ = bool(wanted)
        held_out = self.validation_fraction if wanted and given is None else None
        scorer = None
        if wanted and self.scoring != "loss":
            scorer = check_scoring(self, scoring=self.scoring)
        patience = self.n_iter_no_change if wanted else None
        return Stopping(patience, self.tol, held_out, "before", scorer)

    def _split_seed(self, seed: int) -> int:
        return int(np.random.RandomState(seed % 2**32).randint(np.iinfo(np.uint32).max, dtype="u8"))

    @property
    def train_score_(self) -> np.ndarray:
        """Negative loss, or score, of the training rows before the first round and after each."""
        self._check_fitted()
        return -np.asarray(self._stopping_["train"])

    @property
    def validation_score_(self) -> np.ndarray:
        """Negative loss, or score, of the validation set before the first round and after each."""
        self._check_fitted()
        return -np.asarray(self._stopping_["held"])

    @property
    def is_categorical_(self) -> np.ndarray | None:
        """Mask of the columns of categories; None where there are none."""
        self._check_fitted()
        mask = np.isin(np.arange(self.n_features_in_), list(self.categories_))
        return mask if mask.any() else None


class HistGradientBoostingClassifier(HistGradientBoosting, GradientBoostingClassifier):
    r"""Gradient boosting for classification, under the names of scikit-learn's histogram-based class.

    The objective, a tree's leaf values :math:`-G / (H + \lambda)` and its splits are those of
    :class:`GradientBoostingClassifier`; so are `partial_dependence`, `shap_values` and fits from files and on Dask.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
        The logistic loss, multinomial for more than two classes.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class; "balanced" gives all classes the same total.

    Attributes
    ----------
    %(classes_)s

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import HistGradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HistGradientBoostingClassifier(max_iter=30).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.93
    """

    _parameters: ClassVar[dict[str, Domain]] = {
        **_DOMAINS,
        "loss": Choice("log_loss"),
        "class_weight": GradientBoostingClassifier._parameters["class_weight"],
    }

    @stores_arguments(max_iter=100, warm_start=False, tol=1e-7, verbose=0, random_state=None)
    def __init__(
        self,
        loss: str = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        early_stopping: bool | str = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        class_weight: Mapping[Any, float] | str | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...


class HistGradientBoostingRegressor(HistGradientBoosting, GradientBoostingRegressor):
    r"""Gradient boosting for regression, under the names of scikit-learn's histogram-based class.

    The objective, a tree's leaf values :math:`-G / (H + \lambda)` and its splits are those of
    :class:`GradientBoostingRegressor`; so are `partial_dependence`, `shap_values` and fits from files and on Dask.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "gamma", "poisson", "quantile"}, default="squared_error"
        Gamma and Poisson predict exp(F). The leaves of absolute and quantile loss take the best constant.
    quantile : float, optional
        The quantile that the quantile loss predicts; needed for it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import HistGradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HistGradientBoostingRegressor(max_iter=50, max_leaf_nodes=4).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.63
    """

    _parameters: ClassVar[dict[str, Domain]] = {
        **_DOMAINS,
        "loss": Choice("squared_error", "absolute_error", "gamma", "poisson", "quantile"),
        "quantile": NoneOr(Real(0, 1)),
    }
    delta = 1.0
    power = 1.5
    alpha = None

    @stores_arguments(max_iter=100, warm_start=False, tol=1e-7, verbose=0, random_state=None)
    def __init__(
        self,
        loss: str = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        early_stopping: bool | str = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _check_fit(self, X_val: Any, y_val: Any) -> None:
        super()._check_fit(X_val, y_val)
        if self.loss == "quantile" and (self.quantile is None or not 0 < self.quantile < 1):
            raise ParameterError(f"quantile={self.quantile!r}; expected a number between 0 and 1 with loss='quantile'")
