r"""BERT:  minimise  - mean over hidden places t of  log p(x_t | the text with those places hidden),  with

    u = z_l + attention(norm(z_l)),   z_{l+1} = u + perceptron(norm(u)),   p = softmax(E' norm(z_L)) ,

where every token sees the whole text. What it learns of words serves other tasks: `transform`, and `BERTClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.nets.language._language_model import TRANSFORMER_DEFAULTS, LanguageModel, TransformerArguments
from epicycle.nets.language._tokens import documents_of
from epicycle.nets.training._options import TrainingOptions

#: Stands for a hidden token in the texts of `fill`.
MASK = "[MASK]"


class BERT(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LanguageModel):  # type: ignore[misc]  # untyped mixins
    r"""A transformer that learns to guess hidden words from both sides, and so what texts are about.

    .. math:: \max \sum_{t \in M} \log p(x_t \mid x \text{ with the places } M \text{ hidden}), \qquad
              \mathrm{attention}(Q, K, V) = \mathrm{softmax}\bigl(Q K^\top / \sqrt{d}\bigr) V.

    A share `masked` of the tokens is hidden, anew in every epoch: 80 % of them become a mask, 10 % another token, and
    10 % stay. `fill` guesses what is hidden, `transform` gives vectors of texts, and :class:`BERTClassifier` goes on
    from its weights.

    Parameters
    ----------
    context_length : int, default=64
        Tokens of a text that are seen at once. Longer texts are cut into pieces to learn from; `transform` sees the
        first piece.
    masked : float, default=0.15
        The share of the tokens that is hidden.

    Examples
    --------
    >>> from epicycle import BERT
    >>> texts = ["the cat drinks milk", "the dog eats meat", "a cat drinks milk", "a dog eats meat"] * 20
    >>> model = BERT(n_layers=1, n_heads=2, d_model=32, learning_rate_init=0.01, max_iter=30, random_state=0)
    >>> model = model.fit(texts)
    >>> model.fill(["the cat drinks [MASK]", "a dog [MASK] meat"]).tolist()
    ['the cat drinks milk', 'a dog eats meat']
    >>> model.transform(texts[:3]).shape
    (3, 64)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {"masked": Real(0, 1, inclusive=(False, True))}
    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : iterable of str\n    Texts; with tokenizer=None sequences of integers.",
        "fit_X": "X : iterable of str\n    Texts; with tokenizer=None sequences of integers.",
        "fit_y": "y : ignored",
    }
    _card = MethodCard("nets", ("F6",), ("memory",), "none")
    _module_name = "epicycle.nets.language._modules.BERTModule"

    context_length: int
    masked: float

    @stores_arguments(**TRANSFORMER_DEFAULTS)
    def __init__(
        self,
        tokenizer: Any = "words",
        context_length: int = 64,
        *,
        masked: float = 0.15,
        **shared: Unpack[TransformerArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- training

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]  # texts have no weights
        """Learn to guess hidden tokens of texts."""
        return self._learn(X)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        from epicycle.nets.language._masked_rows import MaskedRows

        documents = self._fit_data(X)
        if self.context_length < 2:
            raise ParameterError(f"context_length={self.context_length}; expected >= 2, the mark of a text and a token")
        tokens = self._learn_tokens(documents)
        self.n_tokens_ = tokens.n_tokens + 2
        width = int(self.context_length) - 1
        coded = [tokens.encode(document) for document in documents]
        pieces = [row[i : i + width] for row in coded for i in range(0, len(row), width)]
        if not pieces:
            raise DataError(f"X: {len(documents)} texts without a token; expected something to learn from")
        return MaskedRows([self._marked(p) for p in pieces], float(self.masked), tokens.n_tokens, self._marks()[0])

    def _marks(self) -> tuple[int, int]:
        """The tokens for what is hidden, and for the beginning of a text."""
        return self.n_tokens_ - 2, self.n_tokens_ - 1

    def _marked(self, tokens: Any) -> np.ndarray:
        return np.concatenate([[self._marks()[1]], np.asarray(tokens, dtype=np.int64)])

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {**self._sizes(), "context_length": int(self.context_length)}

    def _training_options(self, rows: Any) -> TrainingOptions:
        return self._with_parts(super()._training_options(rows), self.batch_size * float(np.mean(rows.lengths)))

    # ------------------------------------------------------------------------------------------- what it knows

    def transform(self, X: Any) -> np.ndarray:
        """Vectors of texts: that of the mark at the beginning, and the mean over all tokens, side by side.

        Returns
        -------
        ndarray of shape (n_samples, 2 * d_model)
        """
        from epicycle.nets.language._modules import summaries

        return self._of_texts(
            self._coded(X), lambda module, tokens, lengths: summaries(module.encode(tokens, lengths), lengths)
        )

    @property
    def _n_features_out(self) -> int:
        return 2 * int(self.architecture_["d_model"])

    def fill(self, X: Any) -> np.ndarray:
        """Texts with every ``[MASK]`` replaced by the most probable token.

        Parameters
        ----------
        X : iterable of str
            Texts with some ``[MASK]`` in them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_fitted()
        if self.tokenizer_ is None:
            raise ParameterError("fill: needs texts; tokenizer=None has sequences of integers (see predict_hidden)")
        tokens, mask = self._codec(), self._marks()[0]
        rows: list[np.ndarray] = []
        for text in documents_of(X, self.tokenizer_):
            parts = [tokens.encode(part) for part in text.split(MASK)]
            row = np.concatenate([piece for part in parts for piece in ([mask], part)][1:])
            if len(row) >= self.context_length:
                raise DataError(
                    f"X: a text of {len(row)} tokens; expected less than context_length={self.context_length}"
                )
            rows.append(row.astype(np.int64))
        answers = np.empty(len(rows), dtype=object)
        answers[:] = [tokens.decode(row) for row in self.predict_hidden(rows)]
        return answers

    def predict_hidden(self, tokens: Sequence[Any]) -> list[np.ndarray]:
        """Sequences of tokens with the hidden ones replaced by the most probable token.

        Parameters
        ----------
        tokens : sequence of arrays of int
            Numbers of tokens; ``n_tokens_ - 2`` stands for a hidden one.

        Returns
        -------
        list of ndarray
        """
        self._check_fitted()
        import torch

        mask, most = self._marks()[0], int(self.context_length)
        rows = [np.asarray(row, dtype=np.int64) for row in tokens]
        for row in rows:
            if len(row) >= most or (len(row) and not (row.min() >= 0 and row.max() <= mask)):
                raise DataError(f"tokens: expected fewer than {most} numbers from 0 to {mask}, which is a hidden token")

        def guesses(module: Any, seen: Any, lengths: Any) -> Any:
            best = module(seen, lengths)[..., :mask].argmax(-1)
            filled = torch.where(seen == mask, best, seen)
            return torch.nn.functional.pad(filled, (0, most - filled.shape[1]))

        found = self._of_texts([self._marked(row) for row in rows], guesses)
        return [answer[1 : 1 + len(row)] for answer, row in zip(found, rows, strict=True)]

    def _coded(self, X: Any) -> list[np.ndarray]:
        """The first piece of each text."""
        self._check_fitted()
        tokens, width = self._codec(), int(self.context_length) - 1
        return [self._marked(tokens.encode(d)[:width]) for d in documents_of(X, self.tokenizer_)]

    def _example_inputs(self, X: Any) -> tuple[Any, ...]:
        from epicycle.nets.training._batches import SequenceRows

        return next(iter(SequenceRows(self._coded(X)).in_order(2))).inputs

    def _of_texts(self, rows: list[np.ndarray], function: Callable[[Any, Any, Any], Any]) -> np.ndarray:
        from epicycle.nets.training._batches import SequenceRows
        from epicycle.nets.training._prediction import outputs

        module = self.module_
        if not rows:
            raise DataError("X: no documents; expected at least one")
        data = SequenceRows(rows)
        return outputs(module, data, self._prediction_batch(), lambda b: function(module, *b.inputs))
