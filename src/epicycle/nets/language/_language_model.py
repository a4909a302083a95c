"""Shared by the transformers: their arguments, their vocabulary, the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, Integer, NoneOr, Real
from epicycle.nets._base import NetEstimator
from epicycle.nets.language._tokens import TOKENIZER, TOKENIZER_DOC, Codec, codec, documents_of, learnt
from epicycle.nets.training._options import LAYERS, NET_DEFAULTS, NetArguments, TrainingOptions, parts_of
from epicycle.optim import Loss, Multinomial

POSITIONS = ("learned", "sinusoidal", "rotary")
_BETAS = (0.9, 0.99)

TRANSFORMER_PARAMETERS: Mapping[str, Domain] = {
    "tokenizer": TOKENIZER,
    "max_words": NoneOr(Integer(1)),
    "context_length": Integer(1),
    "n_layers": LAYERS,
    "n_heads": Integer(1),
    "d_model": Integer(1),
    "positions": Choice(*POSITIONS),
    "dropout": Real(0, 1, inclusive=(True, False)),
    "steps_per_iteration": Integer(1),
}

TRANSFORMER_DOCS: Mapping[str, str] = {
    "tokenizer": TOKENIZER_DOC,
    "max_words": "max_words : int, optional\n"
    "    With tokenizer='words': only the most frequent words; all others are one token.",
    "context_length": "context_length : int, default={default}\n    Tokens that are seen at once.",
    "n_layers": "n_layers : int, default={default}\n    Blocks of attention and perceptron.",
    "n_heads": "n_heads : int, default={default}\n    Heads of each attention; they divide `d_model`.",
    "d_model": "d_model : int, default={default}\n    Length of the vectors that stand for tokens.",
    "positions": "positions : {'learned', 'sinusoidal', 'rotary'}, default={default}\n"
    "    How places are told apart: a learnt vector for each, waves, or queries and keys turned by their place.",
    "dropout": "dropout : float, default={default}\n"
    "    Share of attention weights, embeddings and outputs of layers that are set to zero in a training step.",
    "steps_per_iteration": "steps_per_iteration : int, default={default}\n"
    "    Steps between two rows of the history, scores on what is held out, callbacks and checkpoints.",
    "n_tokens_": "n_tokens_ : int\n    Tokens of the vocabulary.",
    "tokenizer_": "tokenizer_ : str, estimator or None\n    The fitted tokenizer, or its name.",
    "vocabulary_": "vocabulary_ : list of str, or int\n"
    "    The characters or words that are tokens; their number where tokens are no texts.",
}


class TransformerArguments(NetArguments, total=False):
    """Arguments of the transformers beyond those of all networks."""

    max_words: int | None
    n_layers: int
    n_heads: int
    d_model: int
    positions: str
    dropout: float


TRANSFORMER_DEFAULTS: Mapping[str, Any] = {
    "max_words": None,
    "n_layers": 2,
    "n_heads": 4,
    "d_model": 64,
    "positions": "learned",
    "dropout": 0.0,
    **NET_DEFAULTS,
    "learning_rate": "cosine",
    "warmup": 0.1,
    "clip_norm": 1.0,
}


class LanguageModel(NetEstimator):
    """Base of the transformers."""

    _parameters: ClassVar[Mapping[str, Domain]] = TRANSFORMER_PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = TRANSFORMER_DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = ("n_tokens_", "tokenizer_", "vocabulary_")

    tokenizer: Any
    max_words: int | None
    n_layers: int
    n_heads: int
    d_model: int
    positions: str
    dropout: float
    batch_size: int
    accumulate: int

    tokenizer_: Any
    vocabulary_: list[str] | int
    n_tokens_: int
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.string": True, "input_tags.two_d_array": False}

    def _loss(self) -> Loss:
        return Multinomial()

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        from epicycle.nets.training._losses import mean_over_targets

        return mean_over_targets(self._loss())

    def _validate(self, module: Any, held: Any) -> dict[str, float]:
        loss = self._mean_loss(module, held)
        return {"validation_loss": loss, "validation_score": -loss}

    def _bound(self, module: Any, held: Any, n_looks: int) -> None:
        return None  # windows of one text are not independent of each other, nor are tokens of one target

    # ------------------------------------------------------------------------------------------- texts

    def _fit_data(self, X: Any, *_: Any, name: str = "X", **__: Any) -> list[Any]:  # type: ignore[override]
        """The documents; the arguments are compared with each other."""
        if self.d_model % self.n_heads or (self.positions == "rotary" and self.d_model // self.n_heads % 2):
            even = " of even size" if self.positions == "rotary" else ""
            raise ParameterError(
                f"d_model={self.d_model}, n_heads={self.n_heads}: expected heads{even} that divide d_model evenly"
            )
        documents = documents_of(X, self.tokenizer, name)
        if not documents:
            raise DataError(f"{name}: no documents; expected at least one")
        return documents

    def _learn_tokens(self, texts: Sequence[Any]) -> Codec:
        """Set `tokenizer_` and `vocabulary_`; with `warm_start`, and in a stream, those of before stay."""
        earlier = self._earlier()
        if earlier:
            self.tokenizer_, self.vocabulary_ = earlier["tokenizer_"], earlier["vocabulary_"]
        else:
            self.tokenizer_, self.vocabulary_ = learnt(self.tokenizer, texts, self.max_words)
        return self._codec()

    def _earlier(self) -> Mapping[str, Any]:
        """The earlier fit, where it is to be gone on from: in a stream it has not been removed."""
        earlier = self._run.earlier if self.warm_start else vars(self)
        return earlier if "vocabulary_" in earlier else {}

    def _codec(self) -> Codec:
        return codec(self.tokenizer_, self.vocabulary_)

    # ------------------------------------------------------------------------------------------- training

    def _sizes(self) -> dict[str, Any]:
        """The entries that all architectures have."""
        return {
            "n_tokens": self.n_tokens_,
            "n_layers": int(self.n_layers),
            "n_heads": int(self.n_heads),
            "d_model": int(self.d_model),
            "positions": self.positions,
            "dropout": float(self.dropout),
        }

    def _with_parts(self, options: TrainingOptions, tokens_of_batch: float) -> TrainingOptions:
        weights = 12 * self.n_layers * self.d_model**2 + self.n_tokens_ * self.d_model
        work = 6 * weights * tokens_of_batch  # multiplications and additions, forward and backward
        return replace(options, parts=parts_of(work, self.accumulate), betas=_BETAS)
