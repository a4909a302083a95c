r"""A recurrent network that gives numbers to each sequence, or to each of its steps:

    minimise  mean_i v_i |f(x_i) - y_i|^2 / 2,   f(x) = W p(h_1, ..., h_T) + b,   h_t = cell(x_t, h_{t-1}),

or of each step t,  |W h_t + b - y_t|^2 / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_numeric_target
from epicycle.nets._tasks import NetRegressor
from epicycle.nets.sequences._numbers import step_moments
from epicycle.nets.sequences._recurrent import (
    RECURRENT_DEFAULTS,
    RecurrentArguments,
    RecurrentEstimator,
    losses_of_steps,
    step_outputs,
    steps_like,
)
from epicycle.nets.sequences._step_targets import step_targets

_LARGEST = 1e18  # of a target, whose squared error has to be a number in float32


class SequenceRegressor(RecurrentEstimator, NetRegressor):
    r"""Regression from sequences by a recurrent network, of numbers for the whole sequence or for each step.

    .. math:: f(x) = W\, p(h_1, \dots, h_T) + b, \qquad h_t = \mathrm{cell}(x_t, h_{t-1}),

    with the squared loss, by stochastic gradients through all steps. Features are standardised; outputs start at the
    mean of y and are scaled by its deviation.

    Parameters
    ----------
    per_step : bool, default=False
        Whether y has numbers for each step: a list of arrays of shape (n_steps,) or (n_steps, n_targets), or one array
        (n, n_steps) or (n, n_steps, n_targets). `pooling` has no part in this.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SequenceRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 8, 1))
    >>> y = 100 + 10 * X[:, :, 0].max(axis=1)
    >>> model = SequenceRegressor("gru", hidden_size=16, max_iter=15, random_state=0).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.8
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "pooling": Choice("last", "mean", "max"),
        "per_step": Boolean(),
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("n_features_in_", "vocabulary_")
    _card = MethodCard("nets", ("F4",), ("memory",), "none")

    pooling: str
    per_step: bool
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"target_tags.multi_output": True}

    @stores_arguments(**RECURRENT_DEFAULTS)
    def __init__(
        self,
        cell: str = "lstm",
        *,
        pooling: str = "last",
        per_step: bool = False,
        **shared: Unpack[RecurrentArguments],
    ) -> None: ...

    def _learn_targets(self, y: Any, sequences: list[np.ndarray], weight: np.ndarray | None) -> Any:
        name = type(self).__name__
        target: Any
        if self.per_step:
            target, self._vector_ = step_targets(y, [len(s) for s in sequences], name)
            largest = max(float(np.abs(t).max()) for t in target)
        else:
            target = as_numeric_target(y, len(sequences), multi_output=True, estimator_name=name)
            self._vector_ = target.ndim == 1
            largest = float(np.abs(target).max())
            target = target.reshape(len(target), -1)
        if largest > _LARGEST:
            raise DataError(f"y: {largest:g} is too large for float32, in which networks compute; scale y")
        return target if self.per_step else target.astype(np.float32)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        tables = rows.target if self.per_step else rows.target[:, None, :]
        mean, deviation = step_moments(list(tables), rows.weight)
        found = self._network(rows, len(mean), None if self.per_step else self.pooling)
        mean_length = float(np.average(rows.lengths, weights=rows.weight))
        return {**found, "target_mean": mean, "target_deviation": deviation, "mean_length": mean_length}

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        if not self.per_step:
            return super()._row_losses()
        from epicycle.nets.training._losses import loss_of_rows

        return losses_of_steps(loss_of_rows(self._loss()), float(self.architecture_["mean_length"]))

    def _outputs(self, module: Any, rows: Any) -> np.ndarray:
        if not self.per_step:
            return super()._outputs(module, rows)
        return step_outputs(module, rows, self._prediction_batch())

    def _held_out_scores(self, outputs: np.ndarray, rows: Any) -> dict[str, float]:
        from sklearn.metrics import r2_score

        y, weight = rows.targets(), rows.weights()
        if self.per_step:
            weight = None if weight is None else np.repeat(weight, [len(t) for t in y])
            y = np.concatenate(list(y))
        return {"validation_score": float(r2_score(y, outputs, sample_weight=weight))}

    def _predictions(self, X: Any) -> np.ndarray:
        rows = self._sequence_rows(X)
        return self._outputs(self.module_, rows)

    def predict(self, X: Any) -> Any:
        """The predicted numbers, of the shape of y in `fit`: with `per_step` an array where X is one, else a list."""
        if not self.per_step:
            return super().predict(X)
        rows = self._sequence_rows(X)
        found = self._outputs(self.module_, rows)
        return steps_like(X, found[:, 0] if self._vector_ else found, rows.lengths)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained, R^2; with `per_step` of the numbers of all steps."""
        if not self.per_step:
            return float(super().score(X, y, sample_weight))
        from sklearn.metrics import r2_score

        rows = self._sequence_rows(X)
        target, _ = step_targets(y, rows.lengths.tolist(), type(self).__name__)
        weight = None if sample_weight is None else np.repeat(np.asarray(sample_weight), rows.lengths)
        return float(r2_score(np.concatenate(target), self._outputs(self.module_, rows), sample_weight=weight))
