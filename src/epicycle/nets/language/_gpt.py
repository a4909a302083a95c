r"""GPT:  minimise  - mean_t log p(x_t | x_{t-c}, ..., x_{t-1})  over windows of c tokens, with

    z_0 = E x + places,   u = z_l + attention(norm(z_l)),   z_{l+1} = u + perceptron(norm(u)),
    p(. | ...) = softmax(E' norm(z_L)) .

Attention sees what came before only; the vectors E of the tokens are those of the output too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.nets.language._language_model import TRANSFORMER_DEFAULTS, LanguageModel, TransformerArguments
from epicycle.nets.language._next_token import check_sampling, chosen, probabilities
from epicycle.nets.language._tokens import documents_of
from epicycle.nets.training._options import TrainingOptions
from epicycle.nets.training._torch import device_of, one_thread_each, require_torch

#: Windows that are scored after each iteration where texts are held out, at most.
_VALIDATION_WINDOWS = 256


class GPT(LanguageModel):
    r"""A transformer that learns to continue texts: characters, bytes, words, or tokens of a byte-pair encoding.

    .. math:: \max \sum_t \log p(x_t \mid x_{t-c}, \dots, x_{t-1}), \qquad
              \mathrm{attention}(Q, K, V) = \mathrm{softmax}\bigl(Q K^\top / \sqrt{d}\bigr) V,

    with c = `context_length` tokens, blocks of attention and perceptron with the normalisation before each, and one
    table of vectors for the tokens that come in and go out. Several documents are separated by a token of their own.

    Parameters
    ----------
    batch_size : int, default=12
        Windows for each step: at random places of the texts, or at the beginning of random documents where all of
        them fit into `context_length`.
    max_iter : int, default=20
        Iterations of `steps_per_iteration` steps.
    early_stopping : bool, default=False
        Whether to hold out the last `validation_fraction` of the texts, to end when they are no longer predicted
        better, and to keep the weights that predict them best.
    validation_fraction : float, default=0.1
        The share of the texts that `early_stopping` holds out.
    n_iter_no_change : int, default=10
        Iterations without improvement before the fit ends.
    tol : float or None, default=None
        An iteration has to improve the loss by this much. None makes all of them.

    Attributes
    ----------
    end_ : int or None
        The token between documents; None where there was one document.

    Examples
    --------
    >>> from epicycle import GPT
    >>> text = "one two three four five six seven eight nine ten " * 20
    >>> model = GPT(n_layers=2, d_model=32, context_length=32, learning_rate_init=0.01, max_iter=2, random_state=0)
    >>> model = model.fit(text)
    >>> "".join(model.generate("three four ", 20, temperature=0))
    'five six seven eight'
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : str, or iterable of str\n    As in `fit`.",
        "fit_y": "%(ignored)s",
        "score_y": "%(ignored)s",
    }
    _card = MethodCard("nets", ("F6",), ("memory",), "none")
    _module_name = "epicycle.nets.language._modules.GPTModule"

    context_length: int
    end_: int | None

    @stores_arguments(
        **{
            **TRANSFORMER_DEFAULTS,
            "n_layers": 4,
            "d_model": 128,
            "batch_size": 12,
            "warmup": 0.05,
            "weight_decay": 0.1,
        }
    )
    def __init__(
        self,
        tokenizer: Any = "characters",
        context_length: int = 64,
        *,
        steps_per_iteration: int = 100,
        **shared: Unpack[TransformerArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- training

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]  # texts have no weights
        """Learn to continue texts.

        Parameters
        ----------
        X : str, or iterable of str
            One text, or documents; with tokenizer=None sequences of integers.
        """
        return self._learn(X)

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more texts, in `steps_per_iteration` steps; the vocabulary is that of the first call.

        Parameters
        ----------
        X : str, or iterable of str
            As in `fit`.
        """
        require_torch(type(self).__name__)
        self._learn_more(self._training_rows(X, None, None))
        return self

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        from epicycle.nets.language._token_windows import TokenWindows

        documents = self._fit_data(X)
        earlier = dict(self._earlier())
        tokens = self._learn_tokens(documents)
        several = len(documents) > 1
        if earlier and several and earlier["end_"] is None:
            raise DataError(f"X: {len(documents)} documents, but the first fit had one, and no token for the end of it")
        ends = several if not earlier else earlier["end_"] is not None
        self.n_tokens_ = tokens.n_tokens + ends
        self.end_ = tokens.n_tokens if ends else None
        end = np.empty(0, np.int32) if self.end_ is None else np.array([self.end_], np.int32)
        coded = [np.concatenate([end, tokens.encode(document)]) for document in documents]
        text = np.concatenate([*coded, end])
        if len(text) < 2:
            raise DataError(f"X: {len(text)} tokens; expected at least 2 to learn what follows what")
        lengths = np.array([len(document) for document in coded])
        fit_in = several and lengths.max() <= self.context_length
        begins = np.cumsum(lengths) - lengths if fit_in else None
        return TokenWindows([text], int(self.context_length), begins)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {**self._sizes(), "context_length": int(self.context_length)}

    def _training_options(self, rows: Any) -> TrainingOptions:
        width = min(self.context_length, len(rows.tokens) - 1)
        return self._with_parts(super()._training_options(rows), self.batch_size * width)

    def _hold_out(self, rows: Any, seed: int) -> tuple[Any, Any]:
        """The first part of the texts, and windows of the last part."""
        from epicycle.nets.language._token_windows import TokenWindows

        cut = round(len(rows.tokens) * (1 - self.validation_fraction))
        if min(cut, len(rows.tokens) - cut) < 2:
            raise DataError(
                f"validation_fraction={self.validation_fraction:g}: {len(rows.tokens)} tokens are too few to hold some "
                "out; expected at least 2 in each part"
            )
        if rows.begins is None:
            kept = TokenWindows([rows.tokens[:cut]], rows.context)
            return kept, TokenWindows([rows.tokens[cut:]], rows.context, most=_VALIDATION_WINDOWS)
        # whole documents, each read from its beginning to its end as in training
        last = len(rows.tokens) - 1
        first = int(np.searchsorted(rows.begins, round(last * (1 - self.validation_fraction))))
        first = min(max(first, 1), len(rows.begins) - 1)
        starts = rows.begins[first:]
        held = [rows.tokens[a : b + 1] for a, b in zip(starts, [*starts[1:], last], strict=True)]
        kept = TokenWindows([rows.tokens[: starts[0] + 1]], rows.context, rows.begins[:first])
        return kept, TokenWindows(held, rows.context, most=_VALIDATION_WINDOWS)

    def _gradient_rows(self) -> int:
        return max(1, 8192 // self.context_length)

    # ------------------------------------------------------------------------------------------- probabilities

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each document, in nats: the sum over its tokens, and its end where there were several.

        The first token counts where documents have an end, after which they begin. Long documents are cut into
        windows of `context_length` tokens.

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        return self._log_likelihoods(X)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of a token, in nats.

        Returns
        -------
        float
        """
        values, counts = self._log_likelihoods(X)
        if not counts.sum():
            raise DataError("X: no token after another one; expected texts of at least 2 tokens")
        return float(values.sum() / counts.sum())

    def perplexity(self, X: Any) -> float:
        """e to the mean negative log-likelihood of a token: between how many tokens, equally likely, it chooses.

        Returns
        -------
        float
        """
        with np.errstate(over="ignore"):
            return float(np.exp(-self.score(X)))

    def _log_likelihoods(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """(log-likelihood, number of tokens) of each document."""
        self._check_fitted()
        from epicycle.nets.language._token_windows import TokenWindows
        from epicycle.nets.training._prediction import outputs

        tokens = self._codec()
        end = [] if self.end_ is None else [np.array([self.end_], np.int32)]
        sequences = [np.concatenate([*end, tokens.encode(d), *end]) for d in documents_of(X, self.tokenizer_)]
        rows = TokenWindows(sequences, int(self.context_length))
        values = np.zeros(len(sequences))
        if rows.n_rows:
            losses, module = self._row_losses(), self.module_

            def summed(batch: Any) -> Any:
                return losses(module, batch).double() * (batch.target >= 0).sum(1)

            found = outputs(module, rows, self._prediction_batch(), summed)
            np.subtract.at(values, rows.sequence, found)
        counts = np.bincount(rows.sequence, rows.counts, len(sequences))
        return values, counts

    def _example_inputs(self, X: Any) -> tuple[Any, ...]:
        from epicycle.nets.language._token_windows import TokenWindows

        tokens = self._codec()
        rows = TokenWindows([tokens.encode(d) for d in documents_of(X, self.tokenizer_)], int(self.context_length))
        if not rows.n_rows:
            raise DataError("X: no token after another one; expected texts of at least 2 tokens")
        return next(iter(rows.in_order(2))).inputs

    # ------------------------------------------------------------------------------------------- new text

    def generate(
        self,
        prompt: Any = None,
        n_tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        random_state: Seed = None,
    ) -> Iterator[Any]:
        """Continue a text, token by token: an iterator that gives each piece of text as soon as it is chosen.

        It ends after `n_tokens` tokens or with the document. Keys and values of what was read are kept, so a token
        costs one pass over itself; once `context_length` is reached, the last half of it is read again.

        Parameters
        ----------
        prompt : str, or sequence of int with tokenizer=None, optional
            What the text begins with.
        n_tokens : int, default=100
        temperature : float, default=1.0
            Scores are divided by it; 0 takes the most probable token.
        top_k : int, optional
            Only so many of the most probable tokens.
        top_p : float, optional
            Only the most probable tokens whose probabilities add up to this.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same text.

        Returns
        -------
        iterator of str, or of int
        """
        self._check_fitted()
        check_sampling(temperature, top_k, top_p, n_tokens)
        tokens = self._codec()
        read = [] if self.end_ is None else [self.end_]
        if prompt is not None:
            read += tokens.encode(documents_of([prompt], self.tokenizer_, "prompt")[0]).tolist()
        if not read:
            raise DataError(
                "prompt: nothing to continue; expected a text, since the network was fitted to one document"
            )
        rng = stream(seed_of(random_state), "generate")
        return self._continued(read, int(n_tokens), lambda z: chosen(probabilities(z, temperature, top_k, top_p), rng))

    def _continued(self, read: list[int], n_tokens: int, choose: Callable[[np.ndarray], int]) -> Iterator[Any]:
        import torch

        module, add = self.module_, self._codec().stream()
        context = int(self.context_length)
        device = device_of(module)
        past: list[dict[str, Any]] = []
        seen = 0  # tokens of `read` that are in `past`
        read = read[-context:]
        for _ in range(n_tokens):
            if len(read) > context:
                read, past, seen = read[-max(context // 2, 1) :], [], 0
            with one_thread_each(), torch.no_grad():
                scores = module(torch.tensor([read[seen:]], device=device), past)[0, -1].float().cpu().numpy()
            seen = len(read)
            token = choose(scores)
            if token == self.end_:
                return
            read.append(token)
            yield add(token)

    def attention(self, X: Any) -> np.ndarray:
        """The weights with which every token of a text looks at those before it.

        Parameters
        ----------
        X : str, or sequence of int with tokenizer=None
            A text of at most `context_length` tokens.

        Returns
        -------
        ndarray of shape (n_layers, n_heads, n_tokens, n_tokens)
        """
        self._check_fitted()
        import torch

        module = self.module_
        tokens = self._codec().encode(documents_of([X], self.tokenizer_)[0])
        if not 1 <= len(tokens) <= self.context_length:
            raise DataError(f"X: {len(tokens)} tokens; expected 1 to context_length={self.context_length}")
        seen: list[Any] = []
        with one_thread_each(), torch.no_grad():
            module(torch.from_numpy(tokens[None].astype(np.int64)).to(device_of(module)), None, seen)
        return np.concatenate([weights.cpu().numpy() for weights in seen])
