"""Boosted trees for classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import MethodCard
from epicycle.data import Data
from epicycle.data._target import as_labels
from epicycle.stats._class_scores import choose_class, log_probabilities, probabilities
from epicycle.stats._labels import class_weights, encode_labels
from epicycle.tree._shared import known_codes, per_block, shared_parameters
from epicycle.tree.boosting._base import GradientBoosting
from epicycle.tree.boosting._losses import Loss, classification_loss

__all__ = ["GradientBoostingClassifier"]


class GradientBoostingClassifier(ClassifierMixin, GradientBoosting):
    r"""Boosted trees for classification, by Newton steps on histograms.

    Two classes are told apart by the score :math:`F(x) = s_0 + \eta \sum_m h_m(x)` with
    :math:`P(y = 1 | x) = 1 / (1 + e^{-F(x)})`, which minimises the logistic loss; :math:`K > 2` classes have a score
    each, :math:`P(y = k | x) = e^{F_k(x)} / \sum_j e^{F_j(x)}`, and each round grows a tree for each. With
    :math:`g_i = p_i - y_i` and :math:`c_i = p_i (1 - p_i)` (times :math:`K / (K - 1)` for more than two) a tree
    minimises

    .. math:: \sum_i w_i \bigl[g_i h(x_i) + \tfrac12 c_i h(x_i)^2\bigr] + \tfrac{\lambda}{2} \sum_{\text{leaves}} v^2 .

    A leaf with sums G and H of :math:`w g` and :math:`w c` has the value :math:`v = -G / (H + \lambda)`, and a split
    gains

    .. math:: \tfrac12 \Bigl[\frac{G_L^2}{H_L + \lambda} + \frac{G_R^2}{H_R + \lambda} - \frac{G^2}{H + \lambda}\Bigr] .

    Trees grow leaf by leaf, always where most is gained. Features are cut into at most 255 bins, and the sums in a bin
    are kept in fixed point, so that the fit has the same bits for any number of threads, and on a Dask cluster.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes.
    learning_rate : float, default=0.1
        :math:`\eta`. Steps are cut where they might not lower the training loss, and halved where they do not.
    n_estimators : int, default=100
        Rounds; each grows one tree, or one for each of more than two classes.
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
        Share of the features that a tree may use, drawn anew for every round.
    categorical_features : "from_dtype", None, or list of names, numbers or truth values, default="from_dtype"
        Columns that are divided by sets of levels. "from_dtype" takes the columns of a frame that have a categorical
        type. Levels are learnt and later found by value; what the 255 most frequent do not cover counts as missing.
        A split names at most 16 levels, each with as many rows as a leaf must have; all others go together.
    categorical_smoothing : float, default=20.0
        Added to the curvature of levels when they are ordered, and to :math:`\lambda` in the gain of such splits.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do in prediction with levels that the fit did not see.
    monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional
        1: the score does not fall where the feature rises; -1: it does not rise. For two classes.
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
    classes_ : ndarray of shape (n_classes,)
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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=30).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.93
    """

    _target = "labels"
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        **shared_parameters(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="tree", catalogue=("D4", "D5"), engines=("memory", "files", "dask"), certificate="none"
    )

    classes_: np.ndarray

    def __init__(
        self,
        *,
        class_weight: Mapping[Any, float] | str | None = None,
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
        self.class_weight = class_weight
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

    def _loss(self) -> Loss:
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(f"monotonic_cst: y has {len(self.classes_)} classes; expected two, with one score")
        return classification_loss(len(self.classes_))

    def _encode_target(self, data: Data) -> tuple[Data, np.ndarray | None]:
        self.classes_, totals, data = encode_labels(data, type(self).__name__, self.n_jobs)
        return data, class_weights(self.class_weight, self.classes_, totals)

    def _encode_again(self, data: Data) -> Data:
        return data.encode_target(partial(known_codes, classes=self.classes_, argument="y_val"))

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        return known_codes(as_labels(y, n, estimator_name=type(self).__name__), self.classes_)

    def _responses_of(self, X: np.ndarray) -> np.ndarray:
        shares = probabilities(self._outputs_of(X))
        return shares[:, 1:] if len(self.classes_) == 2 else shares

    # ------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Any:
        """Scores F: (n_samples,) for two classes, positive for ``classes_[1]``, else (n_samples, n_classes)."""
        scores = self._raw(self._predict_data(X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The most probable class of every row."""
        return per_block(self._raw(self._predict_data(X)), choose_class, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`."""
        return per_block(self._raw(self._predict_data(X)), probabilities)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, exact also where they underflow."""
        return per_block(self._raw(self._predict_data(X)), log_probabilities)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round."""
        for scores in self._staged_raw(X):
            yield scores[:, 0] if len(self.classes_) == 2 else scores

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The most probable class after each round."""
        for scores in self._staged_raw(X):
            yield choose_class(scores, self.classes_)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Probabilities after each round."""
        for scores in self._staged_raw(X):
            yield probabilities(scores)
