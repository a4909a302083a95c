r"""Transformer:  minimise  - mean_i 1/|y_i| sum_t log p(y_it | x_i, y_i1, ..., y_i,t-1)  over pairs of sequences, with

m = encoder(x):   blocks of  z + attention(norm(z)),  z + perceptron(norm(z)),
p(. | x, y):      blocks of  z + causal attention(norm(z)),  z + attention to m(norm(z)),  z + perceptron(norm(z)) .
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Domain, Integer, NoneOr
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.data._target import as_weight, require_target
from epicycle.nets.language._language_model import TRANSFORMER_DEFAULTS, LanguageModel, TransformerArguments
from epicycle.nets.language._tokens import documents_of
from epicycle.nets.training._options import TrainingOptions
from epicycle.nets.training._torch import device_of, one_thread_each


class Transformer(LanguageModel):
    r"""The encoder-decoder transformer: learns to turn one sequence into another.

    .. math:: \max \sum_i \frac{1}{|y_i|} \sum_t \log p(y_{it} \mid x_i, y_{i1}, \dots, y_{i,t-1}),
              \qquad \mathrm{attention}(Q, K, V) = \mathrm{softmax}\bigl(Q K^\top / \sqrt{d}\bigr) V,

    with an encoder whose tokens see all of the source, and a decoder whose tokens see the source and what came before
    them. Sources and targets share one vocabulary.

    Parameters
    ----------
    beam_size : int, default=1
        Candidates that `predict` keeps side by side; 1 takes the most probable token each time.
    max_length : int, optional
        Tokens of a predicted target at most; by default twice those of the longest in the fit (with learnt positions,
        as many as there).

    Attributes
    ----------
    longest_ : int
        Tokens of the longest sequence in the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import Transformer
    >>> rng = np.random.default_rng(0)
    >>> words = ["".join(rng.choice(list("abc"), size=rng.integers(1, 4))) for _ in range(300)]
    >>> model = Transformer(n_layers=1, positions="learned", batch_size=16, learning_rate_init=0.003, random_state=0)
    >>> model = model.fit(words, [word[::-1] for word in words])
    >>> model.predict(["abc", "cba"]).tolist()
    ['cba', 'abc']
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "beam_size": Integer(1),
        "max_length": NoneOr(Integer(1)),
    }
    _card = MethodCard("nets", ("F6",), ("memory",), "none")
    _module_name = "epicycle.nets.language._modules.TransformerModule"

    beam_size: int
    max_length: int | None
    longest_: int

    @stores_arguments(**{**TRANSFORMER_DEFAULTS, "positions": "sinusoidal"})
    def __init__(
        self,
        tokenizer: Any = "characters",
        *,
        beam_size: int = 1,
        max_length: int | None = None,
        **shared: Unpack[TransformerArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- training

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from pairs of sequences.

        Parameters
        ----------
        X : iterable of str
            Sources; with tokenizer=None sequences of integers.
        y : iterable of str
            Targets, likewise.
        sample_weight : array-like of shape (n_samples,), optional
        """
        return self._learn(X, y, sample_weight)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        from epicycle.nets.language._pair_rows import PairRows

        require_target(y, type(self).__name__)
        sources, targets = self._fit_data(X), documents_of(y, self.tokenizer, "y")
        if len(sources) != len(targets):
            raise DataError(f"X, y: {len(sources)} sources and {len(targets)} targets; expected as many of each")
        tokens = self._learn_tokens([*sources, *targets])
        self.n_tokens_ = tokens.n_tokens + 2
        begin, end = self._marks()
        coded = [self._source(tokens.encode(source)) for source in sources]
        goals = [np.concatenate([[begin], tokens.encode(target), [end]]) for target in targets]
        self.longest_ = max(max(map(len, coded)), max(map(len, goals)) - 2)
        return PairRows(coded, goals, as_weight(sample_weight, len(sources)))

    def _marks(self) -> tuple[int, int]:
        """The tokens that begin and end a target."""
        return self.n_tokens_ - 2, self.n_tokens_ - 1

    def _source(self, tokens: np.ndarray) -> np.ndarray:
        """A source ends by the mark, so that there is something to look at in an empty one."""
        return np.append(tokens, self._marks()[1])

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {**self._sizes(), "longest": self.longest_ + 1}

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        from epicycle.nets.training._losses import loss_of_rows

        of_rows = loss_of_rows(self._loss())

        def losses(module: Any, batch: Any) -> Any:  # mean over the tokens of a target and its end
            source, lengths, goal = batch.inputs
            following = goal[:, 1:]
            return of_rows(module(source, lengths, goal[:, :-1].clamp(min=0)), following) / (following >= 0).sum(1)

        return losses

    def _training_options(self, rows: Any) -> TrainingOptions:
        tokens = np.mean([len(a) + len(b) for a, b in zip(rows.sources, rows.goals, strict=True)])
        return self._with_parts(super()._training_options(rows), self.batch_size * float(tokens))

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> np.ndarray:
        """The most probable target that is found for each source.

        Parameters
        ----------
        X : iterable of str
            Sources; with tokenizer=None sequences of integers.

        Returns
        -------
        ndarray of shape (n_samples,), of str or of lists of int
        """
        self._check_fitted()
        import torch

        from epicycle.nets.language._beam_search import beam_search
        from epicycle.nets.language._pair_rows import PairRows

        tokens, module = self._codec(), self.module_
        sources = self._sources(X)
        begin, end = self._marks()
        most = 2 * self.longest_ + 1 if self.max_length is None else int(self.max_length) + 1
        most = min(most, self.longest_ + 1) if self.architecture_["positions"] == "learned" else most
        found: list[list[int]] = []
        device = device_of(module)
        with one_thread_each(), torch.no_grad():
            for batch in PairRows(sources, sources).in_order(self._prediction_batch()) if sources else ():
                source, lengths, _ = batch.to(device).inputs
                arguments = {"begin": begin, "end": end, "most": most, "width": int(self.beam_size)}
                found += beam_search(module, source, lengths, **arguments)[0]
        answers = np.empty(len(found), dtype=object)
        answers[:] = [tokens.decode(row) for row in found]
        return answers

    def _sources(self, X: Any) -> list[np.ndarray]:
        tokens = self._codec()
        sources = [self._source(tokens.encode(d)) for d in documents_of(X, self.tokenizer_)]
        longest = max(map(len, sources), default=0)
        if self.architecture_["positions"] == "learned" and longest > self.longest_ + 1:
            raise DataError(
                f"X: a source of {longest - 1} tokens; positions='learned' knows those of the fit, {self.longest_} at "
                "most (other positions take any length)"
            )
        return sources

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of sources whose target is predicted without a mistake.

        Parameters
        ----------
        X : iterable of str
            Sources.
        y : iterable of str
            Targets.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        found = self.predict(X)
        targets = documents_of(y, self.tokenizer_, "y")
        if len(found) != len(targets):
            raise DataError(f"X, y: {len(found)} sources and {len(targets)} targets; expected as many of each")
        tokens = self._codec()
        right = [a == tokens.decode(tokens.encode(b)) for a, b in zip(found, targets, strict=True)]
        return float(np.average(right, weights=as_weight(sample_weight, len(right))))

    def _example_inputs(self, X: Any) -> tuple[Any, ...]:
        from epicycle.nets.language._pair_rows import PairRows

        pair = self._sources(X)[:1] * 2
        return next(iter(PairRows(pair, pair).in_order(2))).inputs

    def attention(self, source: Any, target: Any) -> np.ndarray:
        """The weights with which the tokens of a target, and its beginning, look at those of the source, and its end.

        Parameters
        ----------
        source, target : str, or sequence of int with tokenizer=None

        Returns
        -------
        ndarray of shape (n_layers, n_heads, n_target + 1, n_source + 1)
        """
        import torch

        self._check_fitted()
        tokens, module = self._codec(), self.module_
        (coded,) = self._sources([source])
        goal = np.append(self._marks()[0], tokens.encode(documents_of([target], self.tokenizer_, "target")[0]))
        seen: list[Any] = []
        device = device_of(module)
        inputs = [torch.from_numpy(a.astype(np.int64)).to(device) for a in (coded[None], goal[None])]
        with one_thread_each(), torch.no_grad():
            module(inputs[0], torch.tensor([len(coded)], device=device), inputs[1], seen)
        return np.concatenate([weights.cpu().numpy() for weights in seen])
