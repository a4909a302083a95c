"""Gradient boosting for classification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.stats._class_scores import choose_class, log_probabilities, probabilities
from epicycle.stats._labels import class_weights, encode_labels
from epicycle.tree._classes import known_codes, map_rows, second_of_two
from epicycle.tree.boosting._base import GradientBoosting
from epicycle.tree.boosting._losses import BoostingLoss, Exponential, UserLoss, classification_loss
from epicycle.tree.boosting._parameters import BOOSTING_DEFAULTS, BoostingArguments

# Of an initial estimator, before the logarithm.
_LEAST_SHARE = float(np.finfo(np.float32).eps)


class GradientBoostingClassifier(ClassifierMixin, GradientBoosting):  # type: ignore[misc]  # the mixin is untyped
    r"""Gradient boosting for classification, by Newton steps on histograms.

    Two classes have the score :math:`F(x) = s_0 + \eta \sum_m h_m(x)` with
    :math:`P(y = 1 | x) = 1 / (1 + e^{-F(x)})`, which minimises the logistic loss; :math:`K > 2` classes have a score
    each, :math:`P(y = k | x) = e^{F_k(x)} / \sum_j e^{F_j(x)}`, and each round grows a tree for each. With
    :math:`g_i = p_i - y_i` and :math:`c_i = p_i (1 - p_i)` (times :math:`K / (K - 1)` for more than two) a tree
    minimises

    .. math:: \sum_i w_i \bigl[g_i h(x_i) + \tfrac12 c_i h(x_i)^2\bigr] + \tfrac{\lambda}{2} \sum_{\text{leaves}} v^2 .

    A leaf with sums G and H of :math:`w g` and :math:`w c` has the value :math:`v = -G / (H + \lambda)`, and a split
    gains

    .. math:: \tfrac12 \Bigl[\frac{G_L^2}{H_L + \lambda} + \frac{G_R^2}{H_R + \lambda} - \frac{G^2}{H + \lambda}\Bigr] .

    Trees grow leaf by leaf, always where most is gained. Features are binned (at most 255 bins), and the sums in a bin
    are kept in fixed point, so that the fit has the same bits for any number of threads, and on a Dask cluster.

    Parameters
    ----------
    loss : {"log_loss", "exponential"}, default="log_loss"
        The logistic loss, or for two classes that of AdaBoost, :math:`e^{-(2 y - 1) F}`, with
        :math:`P(y = 1 | x) = 1 / (1 + e^{-2 F(x)})`.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class; "balanced" gives all classes the same total.

    Attributes
    ----------
    %(classes_)s
    n_classes_ : int
        Number of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=30).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.93
    """

    _docs: ClassVar[dict[str, str]] = {
        "n_estimators": "n_estimators : int, default={default}\n"
        "    Number of rounds; each grows one tree, or one for each of more than two classes.",
        "monotonic_cst": GradientBoosting._docs["monotonic_cst"].replace("prediction", "score") + " For two classes.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("boosting_attributes",)
    _target = "labels"
    _parameters: ClassVar[dict[str, Domain]] = {
        **GradientBoosting._parameters,
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
        "loss": Choice("log_loss", "exponential"),
    }

    @stores_arguments(**BOOSTING_DEFAULTS)
    def __init__(
        self,
        *,
        loss: str = "log_loss",
        class_weight: Mapping[Any, float] | str | None = None,
        **shared: Unpack[BoostingArguments],
    ) -> None: ...

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        monitor: Callable[..., Any] | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit to rows X with labels y."""
        self._check_fit(X_val, y_val)
        data = self._training_data(X, y, sample_weight)
        self.classes_, totals, data = encode_labels(data, type(self).__name__, self.n_jobs)
        validation = self._validation_data(X_val, y_val, sample_weight_val)
        if validation is not None:
            validation = validation.encode_target(partial(known_codes, classes=self.classes_, argument="y_val"))
        self._fit_init(X, y, sample_weight)
        factors = class_weights(self.class_weight, self.classes_, totals)
        return self._fit_trees(X, data, validation, factors, monitor, X_val)

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        self._check_fitted()
        return len(self.classes_)

    @property
    def _probability_factor(self) -> float:
        # The exponential loss estimates half the log odds.
        return 2.0 if self.loss == "exponential" else 1.0

    def _init_scores(self, X: Any) -> np.ndarray:
        shares = np.clip(np.asarray(self.init_.predict_proba(X), np.float64), _LEAST_SHARE, 1 - _LEAST_SHARE)
        if len(self.classes_) == 2:
            return np.log(shares[:, 1:] / shares[:, :1]) / self._probability_factor
        return np.asarray(np.log(shares))

    def _loss(self) -> BoostingLoss:
        if self.loss == "exponential":
            if len(self.classes_) > 2:
                raise DataError(
                    "loss='exponential' is only suitable for a binary classification problem, y has "
                    f"{len(self.classes_)} classes; use loss='log_loss'"
                )
            return UserLoss(Exponential())
        if self.monotonic_cst is not None and len(self.classes_) > 2:
            raise DataError(
                f"monotonic_cst: monotonic constraints are not supported for multiclass classification; y has "
                f"{len(self.classes_)} classes, expected two, with one score"
            )
        return classification_loss(len(self.classes_))

    # ------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Any:
        """Return scores F: (n_samples,) for two classes, positive for ``classes_[1]``, else (n_samples, n_classes)."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of every row."""
        return map_rows(self._scores(X), choose_class, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, in the order of `classes_`."""
        return map_rows(self._probability_factor * self._scores(X), probabilities)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, exact also where they underflow."""
        return map_rows(self._probability_factor * self._scores(X), log_probabilities)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores after each round."""
        for scores in self._staged_scores(X):
            yield scores[:, 0] if len(self.classes_) == 2 else scores

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the most probable classes after each round."""
        for scores in self._staged_scores(X):
            yield choose_class(scores, self.classes_)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each round."""
        for scores in self._staged_scores(X):
            yield probabilities(self._probability_factor * scores)

    # ------------------------------------------------------------------------------------------- inspection

    def _responses(self, X: np.ndarray) -> np.ndarray:
        return second_of_two(probabilities(self._probability_factor * self._raw_outputs(X)))
