"""Boosted trees for numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data import Data
from epicycle.data._target import as_numeric_target
from epicycle.tree._shared import shared_parameters
from epicycle.tree.boosting._base import GradientBoosting
from epicycle.tree.boosting._losses import LOSS_METHODS, Loss, UserLoss, regression_loss

__all__ = ["GradientBoostingRegressor"]

LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")


class LossOrName(Choice):
    """One of the names, or an object with methods value, gradient and curvature."""

    def has_type(self, value: object) -> bool:
        return isinstance(value, str) or all(callable(getattr(value, m, None)) for m in LOSS_METHODS)

    def accepts(self, value: object) -> bool:
        return self.has_type(value) and (not isinstance(value, str) or value in self.names)

    def describe(self) -> str:
        return f"{super().describe()}, or an object with methods {', '.join(LOSS_METHODS)}"


class GradientBoostingRegressor(RegressorMixin, GradientBoosting):
    r"""Boosted trees for regression, by Newton steps on histograms.

    The prediction is a constant and a sum of trees, :math:`F(x) = s_0 + \eta \sum_m h_m(x)`. With
    :math:`g_i = L'(y_i, F(x_i))` and :math:`c_i = L''(y_i, F(x_i))` each tree minimises

    .. math:: \sum_i w_i \bigl[g_i h(x_i) + \tfrac12 c_i h(x_i)^2\bigr] + \tfrac{\lambda}{2} \sum_{\text{leaves}} v^2,

    which is least squares of the working response :math:`-g_i / c_i` with weights :math:`w_i c_i`. A leaf with sums G
    and H of :math:`w g` and :math:`w c` has the value :math:`v = -G / (H + \lambda)`, and a split gains

    .. math:: \tfrac12 \Bigl[\frac{G_L^2}{H_L + \lambda} + \frac{G_R^2}{H_R + \lambda} - \frac{G^2}{H + \lambda}\Bigr] .

    Trees grow leaf by leaf, always where most is gained. Features are cut into at most 255 bins, and the sums in a bin
    are kept in fixed point, so that the fit has the same bits for any number of threads, and on a Dask cluster.

    Parameters
    ----------
    loss : str or object, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie" (the last three predict
        exp(F)), or an object with methods ``value(y, s)``, ``gradient(y, s)`` and ``curvature(y, s)`` that give arrays
        like y.
        Absolute and quantile loss have no curvature: their trees are those of least squares, and each leaf takes the
        best constant for the loss.
    delta : float, default=1.0
        Where the Huber loss turns from squares to absolute values.
    quantile : float, default=0.5
        The quantile that the quantile loss aims at.
    power : float, default=1.5
        Power of the variance of the Tweedie loss, between 1 and 2.
    learning_rate : float, default=0.1
        :math:`\eta`. Steps are cut where they might not lower the training loss, and halved where they do not.
    n_estimators : int, default=100
        Rounds, each of one tree.
    max_leaf_nodes : int or None, default=31
        Leaves of a tree at most.
    max_depth : int or None, default=None
        Depth of a tree at most.
    min_samples_leaf : int, default=20
        Rows of a leaf at least, whatever their weights.
    min_child_weight : float, default=1e-3
        Curvature H of a leaf at least.
    l2_regularization : float, default=0.0
        :math:`\lambda`.
    min_split_gain : float, default=0.0
        Splits that gain no more than this are not made.
    max_bins : int, default=255
        Bins of a feature at most, beside one for missing values. Cuts are at quantiles of all rows, or of a sample of
        200,000.
    subsample : float, default=1.0
        Share of the rows that a tree is grown from, drawn anew for every round.
    sampling : {"uniform", "gradient"}, default="uniform"
        How they are drawn. "gradient": rows with larger gradients more likely, each counting as much more as it is less
        likely, so that the sums of trees stay right on average. It keeps the quality with fewer rows, 0.2 or 0.3 of
        them, where most rows are fitted well.
    order : {1, 2}, default=2
        Derivatives of the loss that trees are grown from. 2: Newton steps, as above. 1: a tree is fitted to the
        negative gradient by least squares, and its leaves take the best constant for the loss itself.
    max_features : float, default=1.0
        Share of the features that a tree may use, drawn anew for every tree.
    categorical_features : "from_dtype", None, or list of names, numbers or truth values, default="from_dtype"
        Columns that are divided by sets of levels. "from_dtype" takes the columns of a frame that have a categorical
        type. Levels are learnt and later found by value; what the 255 most frequent do not cover counts as missing.
        A split names at most 16 levels, each with as many rows as a leaf must have; all others go together.
    categorical_smoothing : float, default=20.0
        Added to the curvature of levels when they are ordered, and to :math:`\lambda` in the gain of such splits.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do in prediction with levels that the fit did not see.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the prediction does not fall where the feature rises; -1: it does not rise.
    interaction_cst : list of groups of features, optional
        Features that share no group never meet on a path; features that no group names form one more.
    n_iter_no_change : int, optional
        Stop when the loss of the rows kept apart has not fallen for so many rounds, and keep the trees up to its
        minimum.
    validation_fraction : float, default=0.1
        Share of the rows that is kept apart for this, where `fit` is given no `X_val`.
    tol : float, default=1e-7
        How much, relative to the loss, counts as having fallen.
    warm_start : bool, default=False
        Whether another `fit` adds rounds to the earlier ones, up to `n_estimators`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the samples of rows and features, of the rows kept apart, and of the rows that bins are made of where
        there are more than 200,000.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every round.

    Attributes
    ----------
    trees_ : dict of ndarray
        The trees as arrays; see :mod:`epicycle.tree._ensemble`.
    n_estimators_ : int
        Rounds that were kept.
    categories_ : dict of ndarray
        Levels of the columns of categories, by the number of the column.
    feature_importances_ : ndarray of shape (n_features,)
    certificate_ : Certificate
        None: boosting is greedy. Its value is the largest rise of the training loss in any round.
    history_ : History
        After every round the mean training loss, that of the rows kept apart (``validation``), leaves, step and
        seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=50, max_leaf_nodes=4).fit(X, y)
    >>> bool((model.history_.objective[1:] < model.history_.objective[:-1]).all())
    True
    >>> round(model.score(X, y), 2)
    0.63
    """

    _target = "numeric"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "loss": LossOrName(*LOSSES),
        "delta": Real(0, inclusive=False),
        "quantile": Real(0, 1, inclusive=False),
        "power": Real(1, 2, inclusive=False),
        **shared_parameters(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D4", "D5"), engines=("memory", "files", "dask"), certificate="none"
    )

    def __init__(
        self,
        *,
        loss: Any = "squared_error",
        delta: float = 1.0,
        quantile: float = 0.5,
        power: float = 1.5,
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        min_child_weight: float = 1e-3,
        l2_regularization: float = 0.0,
        min_split_gain: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        sampling: str = "uniform",
        max_features: float = 1.0,
        order: int = 2,
        categorical_features: Any = "from_dtype",
        categorical_smoothing: float = 20.0,
        handle_unknown: str = "missing",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        tol: float = 1e-7,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.delta = delta
        self.quantile = quantile
        self.power = power
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.l2_regularization = l2_regularization
        self.min_split_gain = min_split_gain
        self.max_bins = max_bins
        self.subsample = subsample
        self.sampling = sampling
        self.max_features = max_features
        self.order = order
        self.categorical_features = categorical_features
        self.categorical_smoothing = categorical_smoothing
        self.handle_unknown = handle_unknown
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss(self) -> Loss | UserLoss:
        loss = self.loss.removesuffix("_error") if isinstance(self.loss, str) else self.loss
        found = regression_loss(loss, delta=self.delta, quantile=self.quantile, power=self.power)
        if found.leaf_quantile is not None and self.monotonic_cst is not None:
            raise ParameterError(
                f"monotonic_cst cannot be kept with loss={self.loss!r}: its leaves take quantiles of residuals"
            )
        return found

    def _encode_target(self, data: Data) -> tuple[Data, np.ndarray | None]:
        return data, None

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        target = as_numeric_target(y, n, multi_output=False, estimator_name=type(self).__name__)
        self._loss().check_target(target)
        return target

    def _responses_of(self, X: np.ndarray) -> np.ndarray:
        return self._loss().response(self._outputs_of(X))

    def predict(self, X: Any) -> Any:
        """The prediction for every row: F(x), or exp(F(x)) for losses with a logarithmic link."""
        return self._loss().response(self._raw(self._predict_data(X))[:, 0])

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The prediction after each round."""
        for scores in self._staged_raw(X):
            yield self._loss().response(scores[:, 0])
