"""Shared by the networks that read sequences: their arguments, their data as rows, their layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.data._target import as_weight, require_target
from epicycle.nets._base import NetEstimator
from epicycle.nets.sequences._numbers import as_number_sequences, step_moments
from epicycle.nets.sequences._tokens import are_texts, as_token_lists, build_vocabulary, encode_all
from epicycle.nets.training._options import LAYERS, NET_DEFAULTS, NetArguments, TrainingOptions, parts_of

CELLS = ("rnn", "lstm", "gru")
GATES = {"rnn": 1, "lstm": 4, "gru": 3}

RECURRENT_PARAMETERS: Mapping[str, Domain] = {
    "cell": Choice(*CELLS),
    "hidden_size": Integer(1),
    "n_layers": LAYERS,
    "bidirectional": Boolean(),
    "dropout": Real(0, 1, inclusive=(True, False)),
    "embedding_size": Integer(1),
    "analyzer": Choice("word", "char"),
    "lowercase": Boolean(),
    "max_features": NoneOr(Integer(1)),
    "min_df": Integer(1),
}

RECURRENT_DOCS: Mapping[str, str] = {
    "cell": "cell : {'rnn', 'lstm', 'gru'}, default={default}\n"
    "    The unit: the plain one, h_t = tanh(W x_t + U h_{t-1} + b), which forgets soon, or one with gates.",
    "hidden_size": "hidden_size : int, default={default}\n    Units of each layer and direction.",
    "n_layers": "n_layers : int, default={default}\n    Recurrent layers, one above the other.",
    "bidirectional": "bidirectional : bool, default={default}\n"
    "    Whether each layer also reads the sequence from its end.",
    "dropout": "dropout : float, default={default}\n"
    "    Probability with which an output of a layer is set to zero in a training step.",
    "embedding_size": "embedding_size : int, default={default}\n    Of texts: the length of the vector of a token.",
    "analyzer": "analyzer : {'word', 'char'}, default={default}\n"
    "    Of texts: whether tokens are words and single signs of punctuation, or characters. Lists of tokens are taken\n"
    "    as they are.",
    "lowercase": "lowercase : bool, default={default}\n    Of texts: whether capital letters count as small ones.",
    "max_features": "max_features : int, optional\n"
    "    Of texts: the vocabulary is the most frequent so many tokens; others count as unknown.",
    "min_df": "min_df : int, default={default}\n    Of texts: tokens in fewer texts than this count as unknown.",
    "pooling": "pooling : {'last', 'mean', 'max'}, default={default}\n"
    "    What the output is made of: the state after the last step, or the mean or the maximum of the states.",
    "n_features_in_": "n_features_in_ : int\n    Of numbers: features of a step.",
    "vocabulary_": "vocabulary_ : list of str\n    Of texts: the tokens that the network knows.",
    "X": "X : list of arrays of shape (n_steps, n_features) or (n_steps,), array of shape (n, n_steps, n_features) or\n"
    "    (n, n_steps), list of str, or list of lists of str\n"
    "    Sequences of numbers of any lengths, texts, or lists of tokens.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    A sequence of weight v counts as v sequences.",
}


class RecurrentArguments(NetArguments, total=False):
    """Arguments of the networks that read sequences, beyond those that all networks have."""

    hidden_size: int
    n_layers: int
    bidirectional: bool
    dropout: float
    embedding_size: int
    analyzer: str
    lowercase: bool
    max_features: int | None
    min_df: int


RECURRENT_DEFAULTS: Mapping[str, Any] = {
    "hidden_size": 64,
    "n_layers": 1,
    "bidirectional": False,
    "dropout": 0.0,
    "embedding_size": 32,
    "analyzer": "word",
    "lowercase": True,
    "max_features": None,
    "min_df": 1,
    **NET_DEFAULTS,
    "learning_rate_init": 0.003,
    "batch_size": 32,
    # Gradients through many steps are now and then very long.
    "clip_norm": 1.0,
}


class RecurrentEstimator(NetEstimator):
    """Base of the networks that read a sequence step by step."""

    _parameters: ClassVar[Mapping[str, Domain]] = RECURRENT_PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = RECURRENT_DOCS
    _module_name = "epicycle.nets.sequences._module.RecurrentNet"

    cell: str
    hidden_size: int
    n_layers: int
    bidirectional: bool
    dropout: float
    embedding_size: int
    analyzer: str
    lowercase: bool
    max_features: int | None
    min_df: int
    batch_size: int
    accumulate: int

    #: Of texts only.
    vocabulary_: list[str]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "input_tags.two_d_array": False,
        "input_tags.three_d_array": True,
        "input_tags.string": True,
    }

    # ------------------------------------------------------------------------------------------- from data to rows

    def _fit_data(  # type: ignore[override]  # sequences, no table
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[list[np.ndarray], np.ndarray | None]:
        """(sequences as arrays, their weights); learns what they look like."""
        name = type(self).__name__
        X = as_list(X, name)
        weight = as_weight(sample_weight, len(X))
        if not are_texts(X):
            sequences = as_number_sequences(X, name)
            self.n_features_in_ = sequences[0].shape[1]
            return sequences, weight
        lists = as_token_lists(X, "X", name, analyzer=self.analyzer, lowercase=self.lowercase)
        counted = lists if weight is None else [tokens for tokens, v in zip(lists, weight, strict=True) if v > 0]
        self.vocabulary_ = build_vocabulary(counted, self.max_features, self.min_df)
        if not self.vocabulary_:
            raise DataError(f"X: no token is in {self.min_df} of the texts or more; expected a smaller min_df")
        return encode_all(lists, self.vocabulary_), weight

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        from epicycle.nets.training._batches import SequenceRows

        require_target(y, type(self).__name__)
        sequences, weight = self._fit_data(X, y, sample_weight)
        return SequenceRows(sequences, self._learn_targets(y, sequences, weight), weight)

    @abstractmethod
    def _learn_targets(self, y: Any, sequences: list[np.ndarray], weight: np.ndarray | None) -> Any:
        """The targets of the sequences, or of their steps, checked; sets the classes."""

    def _known_sequences(self, X: Any) -> list[np.ndarray]:
        """New sequences as arrays, checked against those of the fit."""
        self._check_fitted()
        name = type(self).__name__
        X = as_list(X, name)
        vocabulary = getattr(self, "vocabulary_", None)
        if are_texts(X) != (vocabulary is not None):
            kinds = ("sequences of numbers", "texts")
            given, fitted = kinds if vocabulary is not None else kinds[::-1]
            raise DataTypeError(f"X: {given}; {name} was fitted to {fitted}")
        if vocabulary is None:
            return as_number_sequences(X, name, self.n_features_in_)
        lists = as_token_lists(X, "X", name, analyzer=self.analyzer, lowercase=self.lowercase)
        return encode_all(lists, vocabulary)

    def _sequence_rows(self, X: Any) -> Any:
        from epicycle.nets.training._batches import SequenceRows

        return SequenceRows(self._known_sequences(X))

    def _network(self, rows: Any, n_outputs: int, pooling: str | None) -> dict[str, Any]:
        """The architecture of a `RecurrentNet` for these rows."""
        found: dict[str, Any] = {
            "cell": self.cell,
            "hidden_size": int(self.hidden_size),
            "n_layers": int(self.n_layers),
            "bidirectional": bool(self.bidirectional),
            "dropout": float(self.dropout),
            "pooling": pooling,
            "n_outputs": int(n_outputs),
        }
        if hasattr(self, "vocabulary_"):
            return {**found, "n_tokens": len(self.vocabulary_), "embedding_size": int(self.embedding_size)}
        mean, deviation = step_moments(rows.sequences, rows.weight)
        return {**found, "mean": mean, "deviation": deviation}

    def _training_options(self, rows: Any) -> TrainingOptions:
        n_inputs = int(self.embedding_size) if hasattr(self, "vocabulary_") else self.n_features_in_
        work = 6 * self.batch_size * float(np.mean(rows.lengths)) * self._weights_of_a_step(n_inputs)
        return replace(super()._training_options(rows), parts=parts_of(work, self.accumulate))

    def _weights_of_a_step(self, n_inputs: int) -> float:
        """Multiplications of one step of one sequence."""
        h, both = self.hidden_size, 1 + bool(self.bidirectional)
        inputs = n_inputs + (self.n_layers - 1) * h * both
        return float(GATES[self.cell] * h * both * (inputs + self.n_layers * h))

    def to_onnx(self, path: Any, X: Any) -> None:
        """Not offered for sequences of different lengths.

        Parameters
        ----------
        path : str or path-like
        X : array-like
        """
        raise ParameterError(f"{type(self).__name__}: networks that read sequences of any length have no ONNX form")


def as_list(X: Any, estimator_name: str) -> Any:
    """X as something that has a length and may be read more than once; of a frame of one column, that column."""
    if hasattr(X, "columns"):
        if len(X.columns) != 1:
            raise DataTypeError(
                f"X: {estimator_name} expects a list of sequences or of texts; got a frame of {len(X.columns)} columns"
            )
        column = X[next(iter(X.columns))]
        return column.to_list() if hasattr(column, "to_list") else list(column)
    if hasattr(X, "to_list") and not isinstance(X, np.ndarray):
        return X.to_list()
    if isinstance(X, str | bytes | dict | set) or X is None:
        raise DataTypeError(
            f"X: {estimator_name} expects a list of sequences or of texts; got {type(X).__name__}"
            + (": put a single text into a list" if isinstance(X, str | bytes) else "")
        )
    if not hasattr(X, "__iter__"):
        raise DataTypeError(f"X: {estimator_name} expects a list of sequences or of texts; got {type(X).__name__}")
    found = X if hasattr(X, "__len__") else list(X)
    if len(found) == 0:
        raise DataError(f"X: found 0 sample(s); {estimator_name} expects at least one sequence")
    return found


def steps_like(X: Any, flat: np.ndarray, lengths: Sequence[int] | np.ndarray) -> Any:
    """Results of all steps, one after the other, as an array where X was one, else as a list of arrays."""
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim > 1:
        return flat.reshape(len(lengths), -1, *flat.shape[1:])
    return np.split(flat, np.cumsum(lengths)[:-1])


def step_outputs(module: Any, rows: Any, batch_size: int) -> np.ndarray:
    """Outputs of all steps of all sequences, one after the other."""
    from epicycle.nets.training._prediction import outputs

    def inside(batch: Any) -> Any:
        return module(*batch.inputs)[mask_of(batch.inputs[1], batch.inputs[0].shape[1])]

    return outputs(module, rows, batch_size, inside)


def mask_of(lengths: Any, n_steps: int) -> Any:
    """Which steps of padded sequences are inside, (n, n_steps)."""
    import torch

    return torch.arange(n_steps, device=lengths.device) < lengths[:, None]


def losses_of_steps(of_rows: Callable[[Any, Any], Any], mean_length: float) -> Callable[[Any, Any], Any]:
    """(module, batch) -> loss of each sequence, with a target for each step: the sum over its steps / `mean_length`.

    So every step counts alike, and the mean over the sequences is the mean over all steps.
    """

    def losses(module: Any, batch: Any) -> Any:
        z = module(*batch.inputs)
        outside = ~mask_of(batch.inputs[1], z.shape[1])
        # Targets are padded by -1: equal outputs there cost nothing and have no gradient.
        return of_rows(z.masked_fill(outside[:, :, None], -1.0), batch.target) / mean_length

    return losses
