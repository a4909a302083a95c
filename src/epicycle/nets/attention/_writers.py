"""Shared by the networks that write texts: their arguments, the loss of a text, the search for the best one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._parameters import Choice, Domain, Integer, NoneOr, Real
from epicycle.nets._base import NetEstimator
from epicycle.nets.sequences._recurrent import CELLS, RECURRENT_DOCS
from epicycle.nets.sequences._tokens import END, PADDING, as_token_lists, build_vocabulary, decode, encode_all
from epicycle.nets.training._options import LAYERS, NET_DEFAULTS, NetArguments
from epicycle.optim import Loss, Multinomial
from epicycle.stats._binomial import largest_rate

WRITER_PARAMETERS: Mapping[str, Domain] = {
    "attention": NoneOr(Choice("additive", "dot")),
    "cell": Choice(*CELLS),
    "hidden_size": Integer(1),
    "n_layers": LAYERS,
    "embedding_size": Integer(1),
    "dropout": Real(0, 1, inclusive=(True, False)),
    "analyzer": Choice("char", "word"),
    "n_beams": Integer(1),
    "length_penalty": Real(0),
    "max_length": NoneOr(Integer(1)),
}

WRITER_DOCS: Mapping[str, str] = {
    **RECURRENT_DOCS,
    "attention": "attention : {'additive', 'dot', None}, default={default}\n"
    "    How well a state s of the decoder and a vector m of the memory fit: v' tanh(A s + B m), or s' B m. With None\n"
    "    the decoder has but the summary that it starts with.",
    "analyzer": "analyzer : {'char', 'word'}, default={default}\n"
    "    Whether the tokens of a text are its characters, or the words between spaces. Lists of tokens are taken as\n"
    "    they are.",
    "hidden_size": "hidden_size : int, default={default}\n    Units of each layer.",
    "n_beams": "n_beams : int, default={default}\n"
    "    Candidates that `predict` keeps at each step; 1 takes the most probable token each time.",
    "length_penalty": "length_penalty : float, default={default}\n"
    "    `predict` looks for the largest log P(y) / |y|^a with this exponent a; 0 compares plain probabilities, which\n"
    "    favours short texts.",
    "max_length": "max_length : int, optional\n"
    "    Tokens that `predict` writes at most; by default half as many again as the longest text of the fit has.",
}


class WriterArguments(NetArguments, total=False):
    """Arguments of the networks that write texts, beyond those that all networks have."""

    hidden_size: int
    n_layers: int
    embedding_size: int
    dropout: float
    analyzer: str
    n_beams: int
    length_penalty: float
    max_length: int | None


WRITER_DEFAULTS: Mapping[str, Any] = {
    "hidden_size": 64,
    "n_layers": 1,
    "embedding_size": 32,
    "dropout": 0.0,
    "analyzer": "char",
    "n_beams": 4,
    "length_penalty": 1.0,
    "max_length": None,
    **NET_DEFAULTS,
    "learning_rate_init": 0.003,
    "batch_size": 32,
    "clip_norm": 1.0,
}


class TextWriter(NetEstimator):
    """Base of the networks that write a text for each row.

    A subclass gives rows whose last input is the target texts (`_target_numbers`), and the inputs of new rows
    (`_source_rows`).
    """

    _parameters: ClassVar[Mapping[str, Domain]] = WRITER_PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = WRITER_DOCS

    attention: str | None
    cell: str
    hidden_size: int
    n_layers: int
    embedding_size: int
    dropout: float
    analyzer: str
    n_beams: int
    length_penalty: float
    max_length: int | None
    accumulate: int
    batch_size: int

    target_vocabulary_: list[str]
    #: Whether the targets were texts and not lists of tokens; tokens of the longest one.
    _writes_texts_: bool
    _longest_: int

    @abstractmethod
    def _source_rows(self, X: Any, targets: Sequence[np.ndarray] | None = None) -> Any:
        """New rows, with the texts that are forced on the decoder as their last input."""

    # ------------------------------------------------------------------------------------------- targets

    def _target_lists(self, y: Any, n_rows: int, *, empty: bool = True) -> list[list[str]]:
        name = type(self).__name__
        if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise DataTypeError(f"y: {name} expects a text, or a list of tokens, for each row; got {type(y).__name__}")
        if len(y) != n_rows:
            raise DataError(
                f"y: Found input variables with inconsistent numbers of samples: [{n_rows}, {len(y)}], that is, X has "
                f"{n_rows} rows and y has {len(y)}"
            )
        analyzer = "space" if self.analyzer == "word" else self.analyzer
        return as_token_lists(y, "y", name, analyzer=analyzer, empty=empty)

    def _learn_targets(self, y: Any, n_rows: int, weight: np.ndarray | None) -> list[np.ndarray]:
        """The texts of the fit as numbers, between marks of their starts and ends."""
        lists = self._target_lists(y, n_rows)
        self._writes_texts_ = isinstance(next(iter(y)), str)
        counted = lists if weight is None else [t for t, v in zip(lists, weight, strict=True) if v > 0]
        self.target_vocabulary_ = build_vocabulary(counted)
        self._longest_ = max(len(tokens) for tokens in counted)
        if not self.target_vocabulary_:
            raise DataError("y: all texts are empty; expected at least one token")
        return self._target_numbers(lists)

    def _target_numbers(self, lists: Sequence[Sequence[str]]) -> list[np.ndarray]:
        return [np.r_[END, tokens, END].astype(np.int64) for tokens in encode_all(lists, self.target_vocabulary_)]

    def _decoder_architecture(self, mean_length: float) -> dict[str, Any]:
        return {
            "attention": self.attention,
            "cell": self.cell,
            "hidden_size": int(self.hidden_size),
            "n_layers": int(self.n_layers),
            "embedding_size": int(self.embedding_size),
            "dropout": float(self.dropout),
            "n_targets": len(self.target_vocabulary_),
            "mean_length": mean_length,
        }

    # ------------------------------------------------------------------------------------------- the loss

    def _loss(self) -> Loss:
        return Multinomial()

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        """Minus log P of each text, with its end, divided by the mean number of tokens."""
        from epicycle.nets.training._losses import loss_of_rows

        of_rows, mean_length = loss_of_rows(self._loss()), float(self.architecture_["mean_length"])

        def losses(module: Any, batch: Any) -> Any:
            *source, targets = batch.inputs
            following = targets[:, 1:]
            scores = module(*source, targets[:, :-1])
            return of_rows(scores, following.masked_fill(following == PADDING, -1)) / mean_length

        return losses

    def _validate(self, module: Any, held: Any) -> dict[str, float]:
        loss = self._mean_loss(module, held)
        return {"validation_loss": loss, "validation_score": -loss}

    def _bound(self, module: Any, held: Any, n_looks: int) -> tuple[int, int, float] | None:
        """On texts that are not written to the letter."""
        if held is None:
            return None
        written = self._written(module, held, forced=True)
        wanted = [row.tolist() for row in self._last_column(held)]
        errors = sum(found != row[1:-1] for found, row in zip(written, wanted, strict=True))
        return errors, len(wanted), largest_rate(errors, len(wanted), 0.05 / max(n_looks, 1))

    @staticmethod
    def _last_column(rows: Any) -> list[np.ndarray]:
        numbers = range(rows.n_rows) if rows.chosen is None else rows.chosen.tolist()
        return [rows.columns[-1][i] for i in numbers]

    # ------------------------------------------------------------------------------------------- prediction

    def _prediction_batch(self) -> int:
        return max(1, 256 // int(self.n_beams))

    def _written(self, module: Any, rows: Any, *, forced: bool = False) -> list[list[int]]:
        """The best text of each row, as numbers; `forced` rows have targets as their last input."""
        from epicycle.nets.training._prediction import outputs

        limit = math.ceil(1.5 * self._longest_) if self.max_length is None else int(self.max_length)

        def one(batch: Any) -> Any:
            import torch

            inputs = batch.inputs[:-1] if forced else batch.inputs
            found = module.write(inputs, int(self.n_beams), max(limit, 1), float(self.length_penalty))
            table = torch.zeros(len(found), max(limit, 1), dtype=torch.long)
            for row, tokens in zip(table, found, strict=True):
                row[: len(tokens)] = torch.tensor(tokens, dtype=torch.long)
            return table

        table = outputs(module, rows, self._prediction_batch(), one)
        return [row[row != PADDING].tolist() for row in table]

    def predict(self, X: Any) -> list[Any]:
        """The text of each row that a beam search finds to be the best: str, or lists of tokens, as y was in `fit`."""
        self._check_fitted()
        found = [decode(row, self.target_vocabulary_) for row in self._written(self.module_, self._source_rows(X))]
        if not self._writes_texts_:
            return found
        return [("" if self.analyzer == "char" else " ").join(tokens) for tokens in found]

    def _forced_rows(self, X: Any, y: Any) -> Any:
        self._check_fitted()
        source = self._source_rows(X)
        lists = self._target_lists(y, source.n_rows)
        return self._source_rows(X, self._target_numbers(lists))

    def score_samples(self, X: Any, y: Any) -> np.ndarray:
        """log P(y | x) of the text y of each row, with its end, in nats.

        Parameters
        ----------
        X : rows, as in `fit`
        y : list of str, or of lists of str

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
        """
        from epicycle.nets.training._prediction import outputs

        rows = self._forced_rows(X, y)
        module, losses = self.module_, self._row_losses()
        found = outputs(module, rows, 256, lambda batch: losses(module, batch))
        return -found.astype(np.float64) * float(self.architecture_["mean_length"])

    def attention_weights(self, X: Any, y: Any = None) -> list[np.ndarray]:
        """Attention of the decoder while it writes: the weights of the memory for each token and the end.

        Parameters
        ----------
        X : rows, as in `fit`
        y : list of str, or of lists of str, optional
            The texts that are written; by default those of `predict`.

        Returns
        -------
        weights : list of ndarray of shape (n_tokens + 1, n_memory)
            Rows add up to one.
        """
        import torch

        from epicycle.nets.training._torch import device_of, one_thread_each

        self._check_fitted()
        if self.architecture_["attention"] is None:
            raise DataError(f"{type(self).__name__}: a network with attention=None has no weights of attention")
        rows = self._forced_rows(X, self.predict(X) if y is None else y)
        found: list[np.ndarray] = []
        module = self.module_
        with one_thread_each(), torch.no_grad():
            for batch in rows.in_order(256):
                *source, targets = batch.to(device_of(module)).inputs
                weights = module.attend(*source, targets[:, :-1])[1].cpu().numpy()
                steps = (targets[:, 1:] != PADDING).sum(1).tolist()
                places = self._memory_places(batch)
                found += [w[:t, :m] for w, t, m in zip(weights, steps, places, strict=True)]
        return found

    @abstractmethod
    def _memory_places(self, batch: Any) -> list[int]:
        """Vectors in the memory of each row."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the texts that are written to the letter.

        Parameters
        ----------
        X : rows, as in `fit`
        y : list of str, or of lists of str
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        exact : float
        """
        found = self.predict(X)
        lists = self._target_lists(y, len(found))
        analyzer = "space" if self.analyzer == "word" else self.analyzer
        written = as_token_lists(found, "X", type(self).__name__, analyzer=analyzer, empty=True)
        right = np.array([a == b for a, b in zip(written, lists, strict=True)], dtype=float)
        return float(np.average(right, weights=sample_weight))
