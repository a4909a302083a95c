"""Linear regression by stochastic gradients:  minimise  mean_i l(w'x_i + b - y_i) + alpha R(w)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.engine._row_order import content_order, repeated
from epicycle.linear._scikit_learn import dense_coef
from epicycle.linear.online._base_sgd import (
    SHARED_PARAMETERS,
    SparsifyOnline,
    StochasticModel,
    learn_piece,
    refuse_dask,
    start_from,
    stream_evidence,
)
from epicycle.linear.online._learner import (
    Piece,
    State,
    coefficients,
    copy_state,
    new_state,
    row_batches,
)
from epicycle.stats._class_scores import linear_predictor


class SGDRegressor(SparsifyOnline, RegressorMixin, StochasticModel):  # type: ignore[misc]
    r"""Linear regression for streams and large data, learnt row by row.

    .. math:: \min_{w, b} \; \frac{1}{V} \sum_i v_i \, l(w'x_i + b - y_i)
              + \alpha \Bigl[\tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1\Bigr], \qquad V = \sum_i v_i ,

    by steps of length :math:`\eta_t` along the gradient of one row at a time. A row costs what its stored entries cost,
    also with a penalty or with averaging. `partial_fit` learns from a stream: a batch gives the same model as its rows
    one by one.

    Parameters
    ----------
    loss : str, default="squared_error"
        "squared_error" (r^2 / 2), "huber" (linear beyond epsilon), "epsilon_insensitive" (max(|r| - epsilon, 0)) or
        "squared_epsilon_insensitive".
    early_stopping : bool, default=False
        Whether `fit` ends by R^2 on a validation set, instead of the objective.
    validation_fraction : float, default=0.1
        Share of the rows in the validation set.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    t_ : float
        One more than the number of rows learnt so far, each counted by its weight.
    certificate_ : Certificate
        A duality gap where that is within tol; otherwise none, with what is known.
    history_ : History
        Mean objective (losses before each step), step and seconds of every pass; "capped" counts steps that were
        shortened because they would have gone past the row's own minimum.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    The notes of :class:`SGDClassifier` on weights, sparse rows and safe steps hold here too.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, -2.0, 0.0] + 0.1 * rng.normal(size=1000)
    >>> SGDRegressor(random_state=0).fit(X, y).coef_.round(1) + 0.0
    array([ 1., -2.,  0.])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "loss": Choice("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"),
        **SHARED_PARAMETERS,
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A13",), engines=("memory", "files"), certificate="duality gap, or none"
    )

    _float_: str

    @stores_arguments
    def __init__(
        self,
        loss: str = "squared_error",
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
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        offset: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: bool | int = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None: ...

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, coef_init: Any = None, intercept_init: Any = None
    ) -> SGDRegressor:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Scan of shape (n_samples, n_features)
        %(y)s
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows.
        coef_init, intercept_init : array-like, optional
            Where to start; zero, or with `warm_start` the earlier fit, by default.
        """
        if self.warm_start and hasattr(self, "n_iter_"):
            coef_init = dense_coef(self.coef_) if coef_init is None else coef_init
            intercept_init = self.intercept_ if intercept_init is None else intercept_init
        return self._fit(X, y, sample_weight, coef_init, intercept_init)

    @fitting
    def _fit(self, X: Any, y: Any, sample_weight: Any, coef_init: Any, intercept_init: Any) -> SGDRegressor:
        data = self._fit_data(X, y, sample_weight, target="numeric")
        refuse_dask(data, type(self).__name__)
        rule = self._rule()
        state = new_state(rule, data.n_features, 1)
        start_from(state, coef_init, intercept_init)
        self._float_ = str(data.dtype)

        def attributes(state: State) -> dict[str, Any]:
            return {"_learner_": state, "_float_": self._float_}

        def held(data: ArrayData, rng: np.random.Generator) -> np.ndarray:
            order = rng.permutation(content_order(data.X, np.ascontiguousarray(data.y), data.weight))
            mask = np.zeros(len(order), dtype=bool)
            mask[order[: int(np.ceil(self.validation_fraction * len(order)))]] = True
            if mask.all():
                raise DataError(f"validation_fraction={self.validation_fraction:g} leaves no row to learn from")
            return mask

        def r_squared(data: ArrayData, rows: np.ndarray, state: State) -> float:
            W, b = coefficients(state, rule)
            y, weight = np.asarray(data.y)[rows], None if data.weight is None else data.weight[rows]
            residual = y - (np.asarray(data.X[rows] @ W[0]) + b[0])
            spread = np.average(np.square(y - np.average(y, weights=weight)), weights=weight)
            return 1.0 - float(np.average(np.square(residual), weights=weight) / spread) if spread > 0 else 0.0

        self._run_epochs(data, rule, state, None, None, attributes, held, r_squared)
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SGDRegressor:
        """Learn from more rows, each once, in their order: a batch gives the same model as its rows one by one.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Scan of shape (n_samples, n_features)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v is learnt as v rows.
        """
        self._learn_stream(X, y, sample_weight, None)
        return self

    @fitting(incremental=True)
    def _predict_then_learn(self, X: Any, y: Any) -> np.ndarray:
        """partial_fit, and what would have been predicted for each row just before it was learnt."""
        scores: list[np.ndarray] = []
        self._learn_stream(X, y, None, scores)
        return np.concatenate(scores)

    def _predicts_with_last_weights(self) -> bool:
        """Whether the scores while learning are those that prediction uses."""
        return not self._rule().average_from

    def _learn_stream(self, X: Any, y: Any, sample_weight: Any, scores: list[np.ndarray] | None) -> None:
        """Learn; the scores of the rows before they were learnt are added to `scores` where that is a list."""
        rule = self._rule()
        first = not hasattr(self, "_learner_")
        data = self._fit_data(X, y, sample_weight, target="numeric", reset=not hasattr(self, "n_features_in_"))
        refuse_dask(data, type(self).__name__)
        if first:
            self._float_ = str(data.dtype)
        state = new_state(rule, data.n_features, 1) if first else copy_state(self._learner_)
        losses = total = 0.0
        for batch in row_batches(data):
            piece = Piece(batch.X, np.asarray(batch.y), *repeated(batch.weight))
            out = None if scores is None else np.empty((piece.n_shown, 1))
            losses += learn_piece(self, state, rule, piece, None, scores=out, one=True)
            total += piece.total
            if scores is not None and out is not None:
                scores.append(out[:, 0])
        self._learner_ = state
        stream_evidence(self, state, losses, total)

    @property
    def coef_(self) -> Any:
        """Coefficients, of shape (n_features,)."""
        if "_learner_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no coef_ before it is fitted")
        w = coefficients(self._learner_, self._rule())[0].astype(self._float_)
        return sp.csr_array(w) if getattr(self, "_sparse_", False) else w[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The intercept, of shape (1,)."""
        if "_learner_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no intercept_ before it is fitted")
        return coefficients(self._learner_, self._rule())[1].astype(self._float_)

    def predict(self, X: Any) -> Any:
        """b + w'x for every row."""
        data = self._predict_data(X)
        W, b = coefficients(self._learner_, self._rule())
        return linear_predictor(data, W.astype(self._float_), b.astype(self._float_), self.n_jobs)[:, 0]
