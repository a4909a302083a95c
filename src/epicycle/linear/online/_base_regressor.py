"""Shared by the models of one number that learn row by row: targets, learning from a stream, predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.core.estimator._estimator import fitting
from epicycle.data import ArrayData, Data
from epicycle.engine._row_order import repeated
from epicycle.linear.online._base_sgd import StochasticModel
from epicycle.linear.online._learner import Piece, copy_state, row_batches, row_targets
from epicycle.optim._losses import EpsilonInsensitive, Huber, Squared, SquaredEpsilonInsensitive

REGRESSION_LOSSES: Mapping[str, tuple[Any, ...]] = {
    "squared_error": (Squared,),
    "huber": (Huber, 0.1),
    "epsilon_insensitive": (EpsilonInsensitive, 0.1),
    "squared_epsilon_insensitive": (SquaredEpsilonInsensitive, 0.1),
}


class OnlineRegressor(StochasticModel):
    """Base of the linear models with one vector of coefficients that learn row by row."""

    _docs: ClassVar[Mapping[str, str]] = {
        "linear_attributes": "coef_ : ndarray of shape (n_features,)\nintercept_ : ndarray of shape (1,)"
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("linear_attributes",)

    #: The loss objects by name, with the parameters that they have by default.
    loss_functions: ClassVar[Mapping[str, tuple[Any, ...]]] = REGRESSION_LOSSES
    _passive_loss: ClassVar[str] = "epsilon_insensitive"

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Data, np.ndarray | None, np.ndarray | None]:
        return self._fit_data(X, y, sample_weight, target="numeric"), None, None

    def _validation_score(self, data: ArrayData, held: np.ndarray, W: np.ndarray, b: np.ndarray) -> float:
        """R^2."""
        y, weight = np.asarray(data.y)[held], None if data.weight is None else data.weight[held]
        residual = y - (np.asarray(data.X[held] @ W[0]) + b[0])
        spread = np.average(np.square(y - np.average(y, weights=weight)), weights=weight)
        return 1.0 - float(np.average(np.square(residual), weights=weight) / spread) if spread > 0 else 0.0

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, each once, in their order: a batch gives the same model as its rows one by one."""
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

    def _stream_data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        return self._fit_data(X, y, sample_weight, target="numeric", reset=not hasattr(self, "n_features_in_"))

    def _learn_stream(self, X: Any, y: Any, sample_weight: Any, scores: list[np.ndarray] | None) -> None:
        """Learn; the scores of the rows before they were learnt are added to `scores` where that is a list."""
        rule = self._stream_rule()
        data = self._stream_data(X, y, sample_weight)
        if hasattr(self, "_learner_"):
            state = copy_state(self._learner_)
        else:
            self._float_, state = str(data.dtype), self._first_state(rule, data.n_features, 1)
        losses = total = 0.0
        for batch in row_batches(data):
            piece = Piece(batch.X, row_targets(batch), *repeated(batch.weight))
            out = None if scores is None else np.empty((piece.n_shown, 1))
            losses += self._learn_piece(state, rule, piece, None, out, one=True)
            total += piece.total
            if scores is not None and out is not None:
                scores.append(out[:, 0])
        self._learner_ = state
        self._conclude_stream(losses, total)

    def predict(self, X: Any) -> Any:
        """b + w'x for every row."""
        return self._scores(X)[:, 0]
