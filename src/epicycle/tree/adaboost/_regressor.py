"""AdaBoost.R2: a weighted median of regressors, each trained where those before were far off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataTypeError, ParameterTypeError
from epicycle.core._parameters import Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, as_data
from epicycle.optim import Solution
from epicycle.tree._base import check_positive_weight
from epicycle.tree.adaboost._weak_learners import flat, seeded_clone
from epicycle.tree.cart._regressor import DecisionTreeRegressor
from epicycle.tree.forest._sampling import RowSamples, row_keys

#: Losses of errors as shares e of the largest one.
LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda e: e,
    "square": lambda e: e**2,
    "exponential": lambda e: 1.0 - np.exp(-e),
}


class AdaBoostRegressor(RegressorMixin, Estimator):  # type: ignore[misc]  # the mixin is untyped
    r"""AdaBoost.R2 (Drucker, 1997), by trees or any other regressor.

    Regressors are added one at a time. Rows weigh :math:`D_i`, which add up to one; the new member is fitted to n rows
    drawn with these probabilities, and the others count for more where its error is a small share
    :math:`e_i = |y_i - h_m(x_i)| / \max_j |y_j - h_m(x_j)|` of the largest:

    .. math:: \varepsilon_m = \sum_i D_i L(e_i), \qquad \beta_m = \frac{\varepsilon_m}{1 - \varepsilon_m}, \qquad
              D_i \leftarrow D_i \, \beta_m^{\nu (1 - L(e_i))} / Z .

    The prediction is the median of the members with weights :math:`\nu \log (1 / \beta_m)`. The fit ends with a member
    without error, or before one whose :math:`\varepsilon_m` is a half or more.

    Parameters
    ----------
    estimator : regressor, optional
        Regressor that the members are clones of; None: decision trees of depth 3.
    n_estimators : int, default=50
        Maximum number of members.
    learning_rate : float, default=1.0
        :math:`\nu`, a factor on the weight of every member.
    loss : {"linear", "square", "exponential"}, default="linear"
        :math:`L(e)`: e, its square, or :math:`1 - \exp(-e)`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the rows that are drawn, and of the members that take one.

    Attributes
    ----------
    estimators_ : list
        The members.
    estimator_ : regressor
        What the members are clones of.
    estimator_weights_, estimator_errors_ : ndarray of shape (n_members,)
        :math:`\nu \log (1 / \beta_m)`, one for a member without error, and :math:`\varepsilon_m`.
    n_estimators_ : int
        Number of members.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the members that have them, weighted as they are.
    certificate_ : Certificate
        None: the members are found greedily.
    history_ : History
        After every round the mean loss of the member (``error``, also the objective) and its weight (``weight``).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import AdaBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AdaBoostRegressor(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.3)
    True
    """

    _docs: ClassVar[dict[str, str]] = {
        "fit_X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)\n    In memory.",
    }
    _parameters: ClassVar[dict[str, Domain]] = {
        "estimator": NoneOr(InstanceOf(BaseEstimator)),
        "n_estimators": Integer(1),
        "learning_rate": Real(0, inclusive=False),
        "loss": Choice(*LOSSES),
    }
    _card: ClassVar[MethodCard] = MethodCard(family="tree", catalogue=("D3",), engines=("memory",), certificate="none")

    estimators_: list[Any]

    @stores_arguments(random_state=None, verbose=0)
    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.estimator is None  # a decision tree sends what is missing to one side
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdaBoostRegressor:
        """Fit to rows X with targets y."""
        if self.estimator is not None and is_classifier(self.estimator):
            raise ParameterTypeError(f"estimator={self.estimator!r:.60} is a classifier; expected a regressor")
        data = self._fit_data(
            flat(X), y, sample_weight, target="numeric", check_finite=self.estimator is not None, missing=True
        )
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: AdaBoostRegressor is fitted in memory, got {type(X).__name__}")
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        check_positive_weight(weight)
        given = X.tocsr() if sp.issparse(X) and X.format not in ("csr", "csc") else X
        given = data.X if not hasattr(given, "shape") else given
        self._conclude(self._rounds(given, row_keys(data.X, np.asarray(data.y)), np.asarray(data.y), weight))
        return self

    def _rounds(self, X: Any, keys: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Solution:
        state = self._resume_state() or {}
        seed = int(state.get("seed", seed_of(self.random_state)))
        known = list(state.get("estimators", []))
        members: list[Any] = []
        weights: list[float] = []
        errors: list[float] = []
        D = weight / weight.sum()
        size = RowSamples(keys, weight, None, bootstrap=True).size  # whole weights are repetitions

        def attributes(x: np.ndarray | None = None) -> dict[str, Any]:
            m = len(members) if x is None else int(x[0])
            return {
                "estimators_": members[:m],
                "n_estimators_": m,
                "estimator_weights_": np.array(weights[:m]),
                "estimator_errors_": np.array(errors[:m]),
            }

        def left() -> dict[str, Any]:
            return {"estimators": [*members], "seed": seed}

        monitor, reason = self._monitor(self.n_estimators, attributes), "converged"
        while len(members) < self.n_estimators:
            number = len(members)
            model = known[number] if number < len(known) else None
            if model is None:
                rows = RowSamples(keys, D, size, bootstrap=True).drawn(seed, number)
                rows = rows[np.argsort(keys[rows], kind="stable")]  # the order of the rows of X does not matter
                model = seeded_clone(self._member(), seed, number)
                model = model.fit(_safe_indexing(X, rows), y[rows]) or model
            loss = _losses(y, np.asarray(model.predict(X)), D > 0, self.loss)
            error = float(D @ loss)
            if error >= 0.5 and number > 0:
                break  # no better than what is there
            # A member without error has weight one, and ends the fit.
            beta = error / (1.0 - error) if 0 < error < 1 else 1.0
            members.append(model)
            weights.append(float(self.learning_rate * -np.log(beta)) if 0 < error < 1 else 1.0)
            errors.append(error)
            if number >= len(known) and monitor(
                len(members),
                np.array([float(len(members))]),
                objective=error,
                state=left,
                error=error,
                weight=weights[-1],
            ):
                reason = "stopped"
                break
            if error <= 0 or error >= 0.5:
                break
            exponent = self.learning_rate * np.log(beta) * (1.0 - loss)
            D = D * np.exp(exponent - exponent[D > 0].max())  # the row with the largest loss keeps its weight
            D = D / D.sum()
        for name, value in attributes().items():
            setattr(self, name, value)
        text = "boosting is greedy: no distance from an optimum is known; every member had a mean loss below a half"
        final = left() if reason == "stopped" else {}
        certificate = Certificate("none", 0.0, 0.0, text)
        return Solution(np.zeros(1), errors[-1], monitor.history(), certificate, len(members), reason, state=final)

    def _member(self) -> Any:
        return DecisionTreeRegressor(max_depth=3) if self.estimator is None else self.estimator

    @property
    def estimator_(self) -> Any:
        """The regressor that the members are clones of."""
        self._check_fitted()
        return self._member()

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importances of the members, weighted as they are."""
        self._check_fitted()
        shares = self.estimator_weights_ / self.estimator_weights_.sum()
        return np.asarray(sum(w * m.feature_importances_ for w, m in zip(shares, self.estimators_, strict=True)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the weighted median of the members for every row."""
        return _medians(self._member_predictions(X), self.estimator_weights_)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        predictions = self._member_predictions(X)
        for m in range(1, self.n_estimators_ + 1):
            yield _medians(predictions[:, :m], self.estimator_weights_[:m])

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield R squared after each round."""
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))

    def _member_predictions(self, X: Any) -> np.ndarray:
        self._check_fitted()
        finite = self.estimator is not None
        data = as_data(flat(X), estimator_name=type(self).__name__, check_finite=finite, missing=True)
        self._check_features(flat(X), data, reset=False)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: expected data in memory, got {type(X).__name__}")
        given = data.X if not hasattr(X, "shape") else X
        return np.column_stack([np.asarray(model.predict(given)) for model in self.estimators_])


def _losses(y: np.ndarray, predicted: np.ndarray, there: np.ndarray, loss: str) -> np.ndarray:
    """Losses of errors, relative to the largest one of the rows `there`; zero where it is the rounding of y."""
    error = np.abs(predicted - y)
    largest = error[there].max()
    rounding = 8 * np.finfo(np.float64).eps * np.abs(y[there]).max()
    share = np.minimum(error / largest, 1.0) if largest > rounding else np.zeros(len(error))
    return np.asarray(LOSSES[loss](share))


def _medians(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The least of the values of each row up to which there is half of the weight."""
    order = np.argsort(values, axis=1)
    sums = np.cumsum(weights[order], axis=1)
    at = (sums >= 0.5 * sums[:, -1:]).argmax(axis=1)
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, at]])
