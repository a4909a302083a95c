r"""Multi-layer perceptrons:  minimise  mean_i v_i l(f(x_i), y_i) + alpha / (2 n) sum_l |W_l|^2  over mini-batches,

    f(x) = W_L z_{L-1} + b_L,   z_l = a(W_l z_{l-1} + b_l),   z_0 = x .

Back-propagation: with d_L = dl/df,  dl/dW_l = d_l z_{l-1}'  and  d_{l-1} = a'(W_{l-1} z_{l-2} + b_{l-1}) * (W_l' d_l).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.nets._tasks import NetClassifier, NetRegressor
from epicycle.nets.mlp._base_mlp import MLP_DEFAULTS, MLPArguments, MultiLayerPerceptron, is_stochastic
from epicycle.nets.training._torch import require_torch
from epicycle.optim import Logistic, Loss
from epicycle.optim._likelihoods import Poisson
from epicycle.optim._losses import Squared
from epicycle.stats._labels import codes, encode_labels, joined_classes, label_table, labels_among


class MLPClassifier(MultiLayerPerceptron, NetClassifier):
    r"""Classification by a multi-layer perceptron.

    .. math:: f(x) = W_L z_{L-1} + b_L, \qquad z_l = a(W_l z_{l-1} + b_l), \qquad z_0 = x,

    with the softmax loss (the logistic loss for two classes or several labels), trained by stochastic gradients.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from epicycle import MLPClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MLPClassifier(64, early_stopping=True, random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> model.score(X[1000:] / 16, y[1000:]) > 0.9
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "label_smoothing": Real(0, 1, inclusive=(True, False)),
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("classes_",)
    _card = MethodCard("nets", ("F1",), ("memory", "files", "dask"), "none")

    label_smoothing: float
    #: Whether y was a table of labels.
    _multilabel_: bool
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"classifier_tags.multi_label": True}

    @stores_arguments(**MLP_DEFAULTS)
    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        label_smoothing: float = 0.0,
        **shared: Unpack[MLPArguments],
    ) -> None: ...

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        table = label_table(y)
        self._multilabel_ = table is not None
        if table is not None:
            data = self._fit_data(X, table, sample_weight, target="numeric", multi_output=True)
            self.classes_ = np.arange(table.shape[1])
        else:
            data = self._fit_data(X, y, sample_weight, target="labels")
            self.classes_, _, data = encode_labels(data, type(self).__name__)
            earlier = self._run.earlier.get("classes_")
            if self.warm_start and earlier is not None and not np.array_equal(earlier, self.classes_):
                raise DataError(
                    "y: warm_start can only be used where `y` has the same classes as in the previous call to fit. "
                    f"Previously got {earlier}, `y` has {self.classes_}"
                )
        self._set_outputs()
        return self._table_rows(data)

    @available_if(is_stochastic)  # type: ignore[untyped-decorator]
    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, in one epoch.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels. A scan brings its own.
        classes : array-like, optional
            All classes; the first call has to name them, unless there was a `fit` before.
        sample_weight : array-like of shape (n_samples,), optional
        """
        first = self._begins_stream(classes)
        table = label_table(y)
        if table is not None:
            self._multilabel_ = True
            data = self._fit_data(X, table, sample_weight, target="numeric", multi_output=True, reset=first)
            self.classes_ = np.arange(table.shape[1])
        else:
            self._multilabel_ = False
            data = self._fit_data(X, y, sample_weight, target="labels", reset=first)
            labels_among(data, classes if first else self.classes_, None)
            self.classes_ = joined_classes(np.empty(0), classes, None if first else self.classes_)
            kind = np.float64 if len(self.classes_) == 2 else np.intp
            data = data.encode_target(partial(codes, labels=self.classes_, dtype=kind))
        self._set_outputs()
        self._learn_more(self._table_rows(data))
        return self

    def _set_outputs(self) -> None:
        self.n_outputs_ = 1 if len(self.classes_) == 2 and not self._multilabel_ else len(self.classes_)
        self.out_activation_ = "softmax" if self.n_outputs_ > 1 and not self._multilabel_ else "logistic"

    def _loss(self) -> Loss:
        return Logistic() if self._multilabel_ else super()._loss()

    def _scores(self, X: Any) -> Any:
        return self._module_outputs(X)

    def _strata(self, rows: Any) -> np.ndarray | None:
        return None if self._multilabel_ else super()._strata(rows)

    def _held_out_errors(self, outputs: np.ndarray, rows: Any) -> np.ndarray | None:
        if self._multilabel_:
            return np.asarray(((outputs > 0) != rows.targets()).any(axis=1))
        return super()._held_out_errors(outputs, rows)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row; with several labels, a table of zeros and ones."""
        self._check_fitted()
        return (self._scores(X) > 0).astype(int) if self._multilabel_ else super().predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`; with several labels, of each of them."""
        self._check_fitted()
        return expit(self._scores(X)) if self._multilabel_ else super().predict_proba(X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        self._check_fitted()
        return -np.logaddexp(0, -self._scores(X)) if self._multilabel_ else super().predict_log_proba(X)


class MLPRegressor(MultiLayerPerceptron, NetRegressor):
    r"""Regression by a multi-layer perceptron, of one number or several.

    .. math:: f(x) = W_L z_{L-1} + b_L, \qquad z_l = a(W_l z_{l-1} + b_l), \qquad z_0 = x,

    with the squared loss, or with the Poisson loss of counts of mean :math:`e^{f(x)}`, by stochastic gradients.

    Parameters
    ----------
    loss : {'squared_error', 'poisson'}, default='squared_error'
        (f - y)^2 / 2, or e^f - y f.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MLPRegressor
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> y = np.sin(3 * X[:, 0])
    >>> model = MLPRegressor(hidden_layer_sizes=(30, 30), learning_rate_init=0.01, max_iter=500, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.99
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "loss": Choice("squared_error", "poisson"),
    }
    _card = MethodCard("nets", ("F1",), ("memory", "files", "dask"), "none")

    loss: str
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"target_tags.multi_output": True}

    @stores_arguments(**MLP_DEFAULTS)
    def __init__(
        self,
        loss: str = "squared_error",
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        **shared: Unpack[MLPArguments],
    ) -> None: ...

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return self._number_rows(X, y, sample_weight, reset=True)

    def _number_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, reset=reset)
        self.n_outputs_, self._vector_ = data.n_targets, data.target_is_vector
        self.out_activation_ = "identity" if self.loss == "squared_error" else "exp"
        return self._table_rows(data)

    @available_if(is_stochastic)  # type: ignore[untyped-decorator]
    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, in one epoch.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        require_torch(type(self).__name__)
        self._learn_more(self._number_rows(X, y, sample_weight, reset=not hasattr(self, "_weights_")))
        return self

    def _loss(self) -> Loss:
        return Squared() if self.loss == "squared_error" else Poisson()

    def _predictions(self, X: Any) -> Any:
        found = self._module_outputs(X)
        return found if self.loss == "squared_error" else np.exp(found)

    def _held_out_scores(self, outputs: np.ndarray, rows: Any) -> dict[str, float]:
        return super()._held_out_scores(outputs if self.loss == "squared_error" else np.exp(outputs), rows)
