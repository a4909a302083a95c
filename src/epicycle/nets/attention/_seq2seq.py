r"""From sequence to sequence by an encoder and a decoder with attention:

    minimise  - mean_i v_i sum_t log P(y_it | y_i1, ..., y_i(t-1), x_i)

with the true tokens before t given to the decoder (teacher forcing); `predict` searches for the best sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.data._target import as_weight, require_target
from epicycle.nets.attention._writers import WRITER_DEFAULTS, TextWriter, WriterArguments
from epicycle.nets.sequences._recurrent import GATES, as_list
from epicycle.nets.sequences._tokens import as_token_lists, build_vocabulary, encode_all
from epicycle.nets.training._options import TrainingOptions, parts_of


class Seq2Seq(TextWriter):
    r"""Texts into other texts, by recurrent networks with attention.

    .. math:: s_t = \mathrm{cell}(e(y_{t-1}), s_{t-1}), \qquad a_t = \mathrm{softmax}_j\, \mathrm{score}(s_t, m_j),
              \qquad P(y_t \mid y_{<t}, x) = \mathrm{softmax}\Bigl(V \tanh W \Bigl[s_t; \sum_j a_{tj} m_j\Bigr]\Bigr),

    where the memory m is what an encoder makes of the text x, reading it in both directions.

    Attributes
    ----------
    source_vocabulary_, target_vocabulary_ : list of str
        Tokens of the texts that are read, and of those that are written.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import Seq2Seq
    >>> rng = np.random.default_rng(0)
    >>> X = ["".join(rng.choice(list("abc"), rng.integers(1, 5))) for _ in range(300)]
    >>> y = [text[::-1] for text in X]
    >>> model = Seq2Seq(hidden_size=24, embedding_size=8, max_iter=15, learning_rate_init=0.02, random_state=0)
    >>> model.fit(X, y).predict(["abc"])
    ['cba']
    """

    _card = MethodCard("nets", ("F5",), ("memory",), "none")
    _module_name = "epicycle.nets.attention._decoder.Seq2SeqNet"
    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : list of str, or of lists of str\n    Texts, or lists of tokens.",
        "y": "y : list of str, or of lists of str\n    What is to be written for each of them.",
        "predict_returns": "texts : list of str, or of lists of str",
    }

    source_vocabulary_: list[str]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.two_d_array": False, "input_tags.string": True}

    @stores_arguments(**WRITER_DEFAULTS)
    def __init__(
        self, attention: str | None = "additive", cell: str = "gru", **shared: Unpack[WriterArguments]
    ) -> None: ...

    def _fit_data(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[list[str]]:  # type: ignore[override]
        name = type(self).__name__
        analyzer = "space" if self.analyzer == "word" else self.analyzer
        return as_token_lists(as_list(X, name), "X", name, analyzer=analyzer)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        require_target(y, type(self).__name__)
        lists = self._fit_data(X, y, sample_weight)
        weight = as_weight(sample_weight, len(lists))
        targets = self._learn_targets(y, len(lists), weight)
        counted = lists if weight is None else [t for t, v in zip(lists, weight, strict=True) if v > 0]
        self.source_vocabulary_ = build_vocabulary(counted)
        return self._rows(lists, targets, weight)

    def _rows(
        self, lists: list[list[str]], targets: Sequence[np.ndarray] | None, weight: np.ndarray | None = None
    ) -> Any:
        from epicycle.nets.attention._rows import JointRows

        columns = [encode_all(lists, self.source_vocabulary_), np.array([len(tokens) for tokens in lists])]
        return JointRows(columns if targets is None else [*columns, targets], None, weight)

    def _source_rows(self, X: Any, targets: Sequence[np.ndarray] | None = None) -> Any:
        self._check_fitted()
        return self._rows(self._fit_data(X), targets)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        mean_length = float(np.average([len(t) - 1 for t in rows.columns[-1]], weights=rows.weight))
        return {**self._decoder_architecture(mean_length), "n_sources": len(self.source_vocabulary_)}

    def _training_options(self, rows: Any) -> TrainingOptions:
        h, e = self.hidden_size, self.embedding_size
        length = float(np.mean([len(t) for t in rows.columns[-1]])), float(np.mean(rows.columns[1]))
        layers = GATES[self.cell] * h * (e + h + 3 * (self.n_layers - 1) * h)
        work = 6.0 * self.batch_size * (length[0] * (layers + 3 * h * h + 2 * length[1] * h) + 2 * length[1] * layers)
        return replace(super()._training_options(rows), parts=parts_of(work, self.accumulate))

    def _memory_places(self, batch: Any) -> list[int]:
        return list(batch.inputs[1].tolist())
