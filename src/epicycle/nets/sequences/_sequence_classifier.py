r"""A recurrent network that gives one class to each sequence:  minimise  mean_i v_i l(f(x_i), y_i)  with

    f(x) = W p(h_1, ..., h_T) + b,   h_t = cell(x_t, h_{t-1}),

p the last state, the mean or the maximum; the gradient goes back through all steps of the sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_labels
from epicycle.nets._tasks import NetClassifier
from epicycle.nets.sequences._recurrent import RECURRENT_DEFAULTS, RecurrentArguments, RecurrentEstimator


class SequenceClassifier(RecurrentEstimator, NetClassifier):
    r"""Classification of sequences by a recurrent network.

    .. math:: f(x) = W\, p(h_1, \dots, h_T) + b, \qquad h_t = \mathrm{cell}(x_t, h_{t-1}),

    with the softmax loss (the logistic loss for two classes), trained by stochastic gradients through all steps.
    Features of numbers are standardised; tokens of texts have vectors that are learnt with the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SequenceClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(n, 1)).cumsum(axis=0) for n in rng.integers(5, 15, 400)]
    >>> y = [x[-1, 0] > x[0, 0] for x in X]
    >>> model = SequenceClassifier("gru", hidden_size=16, max_iter=12, learning_rate_init=0.01, random_state=0)
    >>> model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "pooling": Choice("last", "mean", "max"),
        "label_smoothing": Real(0, 1, inclusive=(True, False)),
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("classes_", "n_features_in_", "vocabulary_")
    _card = MethodCard("nets", ("F4",), ("memory",), "none")

    pooling: str
    label_smoothing: float

    @stores_arguments(**RECURRENT_DEFAULTS)
    def __init__(
        self,
        cell: str = "lstm",
        *,
        pooling: str = "last",
        label_smoothing: float = 0.0,
        **shared: Unpack[RecurrentArguments],
    ) -> None: ...

    def _learn_targets(self, y: Any, sequences: list[np.ndarray], weight: np.ndarray | None) -> np.ndarray:
        return self._learn_classes(as_labels(y, len(sequences), estimator_name=type(self).__name__), weight)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return self._network(rows, 1 if len(self.classes_) == 2 else len(self.classes_), self.pooling)

    def _scores(self, X: Any) -> np.ndarray:
        rows = self._sequence_rows(X)
        return self._outputs(self.module_, rows)
