"""Linear classifiers by stochastic gradients:  minimise  mean_i l(y_i (w'x_i + b)) + alpha R(w),  y_i in {-1, 1}.

One row gives one step  w <- (1 - eta alpha) w - eta l'(z) x  (for R(w) = |w|^2 / 2); more than two classes are learnt
one against the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch
from epicycle.linear.online._base_classifier import OnlineClassifier
from epicycle.linear.online._parameters import CLASS_WEIGHT, SGD_PARAMETERS
from epicycle.stats._class_scores import predictor_batch


def _has_probabilities(model: Any) -> bool:
    if model.loss in ("log_loss", "modified_huber"):
        return True
    raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")


class SGDClassifier(OnlineClassifier):
    r"""Linear classifier for streams and large data, learnt row by row.

    .. math:: \min_{w, b} \; \frac{1}{V} \sum_i v_i \, l\bigl(y_i (w'x_i + b)\bigr)
              + \alpha \Bigl[\tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1\Bigr], \qquad V = \sum_i v_i ,

    by steps of length :math:`\eta_t` along the gradient of one row at a time. A row costs what its stored entries cost,
    also with a penalty or with averaging. `partial_fit` learns from a stream: a batch gives the same model as its rows
    one by one, and labels that were never seen before may come at any time.

    Parameters
    ----------
    loss : str, default="hinge"
        "hinge" (linear support vector machine), "log_loss" (logistic regression), "modified_huber", "squared_hinge",
        "perceptron", or a loss of regression on -1 and 1: "squared_error", "huber", "epsilon_insensitive",
        "squared_epsilon_insensitive".

    Notes
    -----
    A row of weight v counts as v rows: it is learnt as often, with a last step for the fraction that is left, and a row
    of weight zero not at all. So weights are repetitions, exactly. Dense and sparse rows give the same model, but for
    `intercept_rate`. Steps on losses without a bound on their derivative (the squared ones) are never longer than to
    the minimum of the row's own loss, which makes them safe for any eta0 and any scale of the features.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from epicycle import SGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    0.99

    A stream, whose third class comes late:

    >>> stream = SGDClassifier(loss="log_loss")
    >>> stream.partial_fit([[0.0], [1.0]], ["a", "b"]).partial_fit([[9.0]], ["c"]).classes_
    array(['a', 'b', 'c'], dtype='<U1')
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "loss": Choice(*OnlineClassifier.loss_functions),
        **SGD_PARAMETERS,
        "class_weight": CLASS_WEIGHT,
    }

    @stores_arguments(
        fit_intercept=True, max_iter=1000, tol=1e-3, random_state=None, warm_start=False, n_jobs=None, verbose=0
    )
    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        intercept_rate: float | str = "auto",
        shuffle: bool = True,
        epsilon: float = 0.1,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        offset: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Mapping[Any, float] | str | None = None,
        average: bool | int = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`; for more than two, shares of their own models'."""
        return self._map(X, _probability_batch, self.loss)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def _probability_batch(
    batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray, loss: str
) -> np.ndarray:
    scores = predictor_batch(batch, coef, intercept)
    if len(classes) == 1:
        return np.ones((len(scores), 1))
    p = expit(scores) if loss == "log_loss" else (np.clip(scores, -1, 1) + 1) / 2
    if len(classes) == 2:
        return np.column_stack([expit(-scores) if loss == "log_loss" else 1 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(p, total, out=np.full_like(p, 1 / len(classes)), where=total > 0))
