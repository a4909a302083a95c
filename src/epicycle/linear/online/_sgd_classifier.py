"""Linear classifiers by stochastic gradients:  minimise  mean_i l(y_i (w'x_i + b)) + alpha R(w),  y_i in {-1, 1}.

One row gives one step  w <- (1 - eta alpha) w - eta l'(z) x  (for R(w) = |w|^2 / 2); more than two classes are learnt
one against the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch
from epicycle.engine._row_order import content_order
from epicycle.linear._scikit_learn import dense_coef
from epicycle.linear.online._base_classifier import OnlineClassifier, positive_codes
from epicycle.linear.online._base_sgd import SHARED_PARAMETERS, StochasticModel, refuse_dask, start_from
from epicycle.linear.online._learner import State, coefficients, new_state
from epicycle.stats._class_scores import choose_class, predictor_batch
from epicycle.stats._labels import class_weights, encode_labels


def _has_probabilities(model: Any) -> bool:
    if model.loss in ("log_loss", "modified_huber"):
        return True
    raise AttributeError(f"loss={model.loss!r} gives no probabilities; log_loss and modified_huber do")


class SGDClassifier(StochasticModel, OnlineClassifier):
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
    early_stopping : bool, default=False
        Whether `fit` ends by the accuracy on a validation set, instead of the objective.
    validation_fraction : float, default=0.1
        Share of each class in the validation set.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    t_ : float
        One more than the number of rows learnt so far, each counted by its weight.
    certificate_ : Certificate
        A duality gap where that is within tol; otherwise none, with what is known.
    history_ : History
        Mean objective (losses before each step), step, mistakes and seconds of every pass; "capped" counts steps that
        were shortened because they would have gone past the row's own minimum.
    n_iter_ : int
    converged_ : bool

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
        "loss": Choice(
            "hinge",
            "log_loss",
            "modified_huber",
            "squared_hinge",
            "perceptron",
            "squared_error",
            "huber",
            "epsilon_insensitive",
            "squared_epsilon_insensitive",
        ),
        **SHARED_PARAMETERS,
        "class_weight": NoneOr(AnyOf(InstanceOf(dict), Choice("balanced"))),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A13",), engines=("memory", "files"), certificate="duality gap, or none"
    )

    @stores_arguments
    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        intercept_rate: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        epsilon: float = 0.1,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        offset: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        average: bool | int = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, coef_init: Any = None, intercept_init: Any = None
    ) -> SGDClassifier:
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Scan of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings. A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows.
        coef_init, intercept_init : array-like, optional
            Where to start; zero, or with `warm_start` the earlier fit, by default.
        """
        earlier = None
        if self.warm_start and hasattr(self, "classes_") and hasattr(self, "n_iter_"):
            earlier = self.classes_
            coef_init = dense_coef(self.coef_) if coef_init is None else coef_init
            intercept_init = self.intercept_ if intercept_init is None else intercept_init
        return self._fit(X, y, sample_weight, coef_init, intercept_init, earlier)

    @fitting
    def _fit(
        self, X: Any, y: Any, sample_weight: Any, coef_init: Any, intercept_init: Any, earlier: np.ndarray | None
    ) -> SGDClassifier:
        data = self._fit_data(X, y, sample_weight, target="labels")
        refuse_dask(data, type(self).__name__)
        rule = self._rule()
        self.classes_, totals, data = encode_labels(data, type(self).__name__, self.n_jobs)
        if earlier is not None and not np.array_equal(earlier, self.classes_):
            raise DataError("y: warm_start goes on with the classes of the earlier fit; these are others")
        factors = class_weights(self.class_weight, self.classes_, totals)
        positive = positive_codes(len(self.classes_), spare=False)
        state = new_state(rule, data.n_features, len(positive))
        start_from(state, coef_init, intercept_init)
        self._open_, self._float_ = False, str(data.dtype)

        def attributes(state: State) -> dict[str, Any]:
            return {"_learner_": state, "classes_": self.classes_, "_open_": False, "_float_": self._float_}

        def held(data: ArrayData, rng: np.random.Generator) -> np.ndarray:
            return _stratified(data, rng, self.validation_fraction)

        def accuracy(data: ArrayData, rows: np.ndarray, state: State) -> float:
            W, b = coefficients(state, rule)
            found = choose_class(np.asarray(data.X[rows] @ W.T) + b, np.arange(len(self.classes_)))
            weight = None if data.weight is None else data.weight[rows]
            return float(np.average(found == np.asarray(data.y)[rows], weights=weight))

        self._run_epochs(data, rule, state, positive, factors, attributes, held, accuracy)
        return self

    # ------------------------------------------------------------------------------------------- probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`; for more than two, shares of their own models'."""
        return self._map(X, _probability_batch, self.loss)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def _stratified(data: ArrayData, rng: np.random.Generator, share: float) -> np.ndarray:
    """A mask of rows to hold out: the share of each class, whatever the order in which the rows are stored."""
    y = np.asarray(data.y, dtype=np.float64)
    held = np.zeros(len(y), dtype=bool)
    order = rng.permutation(content_order(data.X, y, data.weight))
    for code in np.unique(y):
        rows = order[y[order] == code]
        held[rows[: int(np.ceil(share * len(rows)))]] = True
        if held[rows].all():
            raise DataError(f"validation_fraction={share:g} leaves no row to learn from of a class with {len(rows)}")
    return held


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
