r"""A recurrent network that gives a class to each step of a sequence:

    minimise  mean over all steps of  l(W h_t + b, y_t),   h_t = cell(x_t, h_{t-1}),

h_t being the states of both directions where there are two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_weight
from epicycle.nets.sequences._recurrent import (
    RECURRENT_DEFAULTS,
    RecurrentArguments,
    RecurrentEstimator,
    losses_of_steps,
    step_outputs,
    steps_like,
)
from epicycle.nets.sequences._step_targets import step_labels
from epicycle.optim import Loss, Multinomial
from epicycle.stats._class_scores import probabilities
from epicycle.stats._labels import codes, encode_array


class SequenceTagger(RecurrentEstimator):
    r"""A class for each step of a sequence, by a recurrent network.

    .. math:: f_t(x) = W h_t + b, \qquad h_t = \mathrm{cell}(x_t, h_{t-1}),

    with the softmax loss of every step, by stochastic gradients through all steps. With ``bidirectional=True`` the
    class of a step depends on what comes before it and after it.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SequenceTagger
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.integers(0, 2, n) for n in rng.integers(3, 12, 300)]
    >>> y = [np.where(x.cumsum() % 2, "odd", "even") for x in X]  # number of ones so far
    >>> model = SequenceTagger("gru", hidden_size=16, max_iter=30, learning_rate_init=0.01, random_state=0)
    >>> model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.95
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "label_smoothing": Real(0, 1, inclusive=(True, False)),
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("classes_", "n_features_in_", "vocabulary_")
    _docs: ClassVar[Mapping[str, str]] = {
        "fit_y": "y : list of arrays of shape (n_steps,), or array of shape (n, n_steps)\n"
        "    A label for each step of each sequence.",
        "predict_returns": "list of arrays of shape (n_steps,), or array of shape (n, n_steps) where X is an array",
        "predict_proba_returns": "list of arrays of shape (n_steps, n_classes), or one array where X is one",
    }
    _card = MethodCard("nets", ("F4",), ("memory",), "none")

    label_smoothing: float
    classes_: Any

    @stores_arguments(**RECURRENT_DEFAULTS)
    def __init__(
        self, cell: str = "lstm", *, label_smoothing: float = 0.0, **shared: Unpack[RecurrentArguments]
    ) -> None: ...

    def _learn_targets(self, y: Any, sequences: list[np.ndarray], weight: np.ndarray | None) -> list[np.ndarray]:
        name = type(self).__name__
        labels = step_labels(y, [len(s) for s in sequences], name)
        counted = labels if weight is None else [part for part, v in zip(labels, weight, strict=True) if v > 0]
        flat = np.concatenate(counted)
        self.classes_ = encode_array(flat, np.ones(len(flat)), name)[0]
        return [codes(part, self.classes_) for part in labels]

    def _architecture(self, rows: Any) -> dict[str, Any]:
        mean_length = float(np.average(rows.lengths, weights=rows.weight))
        return {**self._network(rows, len(self.classes_), None), "mean_length": mean_length}

    def _loss(self) -> Loss:
        return Multinomial()

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        from epicycle.nets.training._losses import loss_of_rows

        of_rows = loss_of_rows(self._loss(), self.label_smoothing)
        return losses_of_steps(of_rows, float(self.architecture_["mean_length"]))

    def _outputs(self, module: Any, rows: Any) -> np.ndarray:
        return step_outputs(module, rows, self._prediction_batch())

    def _held_out_scores(self, outputs: np.ndarray, rows: Any) -> dict[str, float]:
        y, weight = rows.targets(), rows.weights()
        right = outputs.argmax(axis=1) == np.concatenate(list(y))
        v = None if weight is None else np.repeat(weight, [len(part) for part in y])
        return {"validation_score": float(np.average(right, weights=v))}

    def _held_out_errors(self, outputs: np.ndarray, rows: Any) -> np.ndarray | None:
        # Steps of one sequence are not independent, which the bound needs: a sequence is right where all steps are.
        y = rows.targets()
        wrong = outputs.argmax(axis=1) != np.concatenate(list(y))
        return np.logical_or.reduceat(wrong, np.cumsum([0, *(len(part) for part in y[:-1])]))

    def _step_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """(scores of all steps, lengths of the sequences)."""
        rows = self._sequence_rows(X)
        return self._outputs(self.module_, rows), rows.lengths

    def predict(self, X: Any) -> Any:
        """The most probable class of each step."""
        scores, lengths = self._step_scores(X)
        return steps_like(X, self.classes_[scores.argmax(axis=1)], lengths)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes at each step, in the order of `classes_`."""
        scores, lengths = self._step_scores(X)
        return steps_like(X, probabilities(scores.astype(np.float64)), lengths)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the steps that get their class.

        Parameters
        ----------
        X : list of sequences or of texts, as in `fit`
        y : list of arrays of shape (n_steps,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        accuracy : float
        """
        scores, lengths = self._step_scores(X)
        labels = step_labels(y, lengths.tolist(), type(self).__name__)
        right = self.classes_[scores.argmax(axis=1)] == np.concatenate(labels)
        v = as_weight(sample_weight, len(lengths))
        return float(np.average(right, weights=None if v is None else np.repeat(v, lengths)))
