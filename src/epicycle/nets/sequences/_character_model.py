r"""A recurrent network that predicts the next character:  minimise  - mean_t log P(x_{t+1} | x_1, ..., x_t),

    P(. | x_1, ..., x_t) = softmax(W h_t + b),   h_t = cell(e(x_t), h_{t-1}),

by truncated back-propagation through time: the state goes on from one window of the text to the next, gradients end at
the edges of windows.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, Integer, Real
from epicycle.core._random import stream
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.nets._base import NetEstimator
from epicycle.nets.sequences._recurrent import CELLS, GATES, RECURRENT_DOCS, as_list
from epicycle.nets.sequences._tokens import (
    END,
    N_SPECIAL,
    PADDING,
    UNKNOWN,
    as_token_lists,
    build_vocabulary,
    encode_all,
    token_numbers,
)
from epicycle.nets.training._options import LAYERS, NET_DEFAULTS, NetArguments, TrainingOptions, parts_of
from epicycle.optim import Loss, Multinomial

_SCORED_STEPS = 512  # of texts that are scored, before their states go on
_SCORED_TEXTS = 64


class CharacterModel(NetEstimator):
    r"""A language model of characters, by a recurrent network.

    .. math:: \min \; -\frac1n \sum_t \log P(x_{t+1} \mid x_1, \dots, x_t), \qquad
              P(\cdot \mid x_1, \dots, x_t) = \mathrm{softmax}(W h_t + b), \qquad h_t = \mathrm{cell}(e(x_t), h_{t-1}),

    trained on windows of the text; the state goes on from one window to the next (truncated back-propagation through
    time). Several texts are read as one, with a mark for their ends that the model learns to predict.

    Parameters
    ----------
    window : int, default=100
        Characters through which gradients go back.
    batch_size : int, default=32
        The text is cut into so many pieces, which are read side by side.

    Attributes
    ----------
    vocabulary_ : list of str
        The characters that the model knows; others count as one unknown character.

    Examples
    --------
    >>> from epicycle import CharacterModel
    >>> text = "she sells sea shells by the sea shore. " * 50
    >>> model = CharacterModel(hidden_size=32, window=40, batch_size=8, max_iter=30, learning_rate_init=0.02,
    ...                        random_state=0).fit([text])
    >>> model.bits_per_character([text[:500]]) < 0.5
    True
    >>> model.sample(12, prompt="she sells ", temperature=0)
    'sea shells b'
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "cell": Choice(*CELLS),
        "window": Integer(1),
        "hidden_size": Integer(1),
        "n_layers": LAYERS,
        "embedding_size": Integer(1),
        "dropout": Real(0, 1, inclusive=(True, False)),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        **RECURRENT_DOCS,
        "X": "X : list of str\n    Texts.",
        "embedding_size": "embedding_size : int, default={default}\n    Length of the vector of a character.",
    }
    _card = MethodCard("nets", ("F4",), ("memory",), "none")
    _module_name = "epicycle.nets.sequences._character_module.CharacterNet"

    cell: str
    window: int
    hidden_size: int
    n_layers: int
    embedding_size: int
    dropout: float
    batch_size: int
    accumulate: int
    vocabulary_: list[str]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.two_d_array": False, "input_tags.string": True}

    @stores_arguments(**{**NET_DEFAULTS, "batch_size": 32, "learning_rate_init": 0.003, "clip_norm": 1.0})
    def __init__(
        self,
        cell: str = "lstm",
        *,
        window: int = 100,
        hidden_size: int = 128,
        n_layers: int = 1,
        embedding_size: int = 32,
        dropout: float = 0.0,
        **shared: Unpack[NetArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]  # texts have no weights
        """Train the model on texts.

        Parameters
        ----------
        X : list of str
            Texts, or one long text in a list.
        y : ignored

        Returns
        -------
        self : CharacterModel
        """
        return self._learn(X)

    def _fit_data(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[list[str]]:  # type: ignore[override]
        name = type(self).__name__
        return as_token_lists(as_list(X, name), "X", name, analyzer="char")

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        lists = self._fit_data(X, y, sample_weight)
        self.vocabulary_ = build_vocabulary(lists)
        pieces = [np.array([END])]
        for text in encode_all(lists, self.vocabulary_):
            pieces += [text, np.array([END])]
        # Short integers: a character takes four bytes while the fit runs.
        return self._windows(np.concatenate(pieces).astype(np.int32))

    def _windows(self, tokens: np.ndarray) -> Any:
        from epicycle.nets.sequences._windows import WindowRows

        return WindowRows(tokens, int(self.batch_size), int(self.window))

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {
            "cell": self.cell,
            "n_tokens": len(self.vocabulary_),
            "embedding_size": int(self.embedding_size),
            "hidden_size": int(self.hidden_size),
            "n_layers": int(self.n_layers),
            "dropout": float(self.dropout),
            "n_lanes": rows.n_lanes,
        }

    def _training_options(self, rows: Any) -> TrainingOptions:
        h = self.hidden_size
        weights = GATES[self.cell] * h * (self.embedding_size + (2 * self.n_layers - 1) * h)
        work = 6.0 * rows.n_lanes * rows.window * (weights + h * len(self.vocabulary_))
        parts = parts_of(work, self.accumulate)
        return replace(super()._training_options(rows), parts=parts, batch_size=rows.n_lanes, shuffle=False)

    def _loss(self) -> Loss:
        return Multinomial()

    def _row_losses(self) -> Callable[[Any, Any], Any]:
        from epicycle.nets.training._losses import mean_over_targets

        return mean_over_targets(self._loss())

    def _hold_out(self, rows: Any, seed: int) -> tuple[Any, Any]:
        """The end of the text is held out: pieces from its middle would be half known."""
        n_held = math.ceil(self.validation_fraction * rows.n_predictions)
        if n_held < 2 or rows.n_predictions - n_held < 2:
            raise DataError(
                f"validation_fraction={self.validation_fraction:g}: The validation set is too small, {n_held} of "
                f"{rows.n_predictions} characters; expected at least 2"
            )
        return self._windows(rows.tokens[:-n_held]), rows.tokens[-n_held - 1 :]

    def _validate(self, module: Any, held: Any) -> dict[str, float]:
        bits = -float(self._log_likelihoods(module, [held])[0]) / math.log(2) / (len(held) - 1)
        return {"validation_loss": bits * math.log(2), "validation_score": -bits}

    def _bound(self, module: Any, held: Any, n_looks: int) -> None:
        """None: characters of one text are not independent."""
        return

    # ------------------------------------------------------------------------------------------- scores

    def _log_likelihoods(self, module: Any, texts: Sequence[np.ndarray]) -> np.ndarray:
        """log P of each text after its first token, in nats."""
        import torch

        from epicycle.nets.training._batches import padded
        from epicycle.nets.training._torch import one_thread_each

        found = np.zeros(len(texts))
        device = module.carried.device
        with one_thread_each(), torch.no_grad():
            for first in range(0, len(texts), _SCORED_TEXTS):
                part = texts[first : first + _SCORED_TEXTS]
                table = torch.from_numpy(padded(part, PADDING).astype(np.int64)).to(device)
                lengths = torch.tensor([len(text) for text in part], device=device)
                state = module.start(len(part))
                for start in range(0, table.shape[1] - 1, _SCORED_STEPS):
                    steps = table[:, start : start + _SCORED_STEPS + 1]
                    scores, state = module.advance(steps[:, :-1], state)
                    logs = scores.double().log_softmax(-1).gather(2, steps[:, 1:, None])[:, :, 0]
                    at = start + 1 + torch.arange(logs.shape[1], device=device)
                    found[first : first + len(part)] += (logs * (at < lengths[:, None])).sum(1).cpu().numpy()
        return found

    def _scored(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """(log P of each text, the number of its characters and its end)."""
        self._check_fitted()
        lists = self._fit_data(X)
        texts = [np.r_[END, text, END] for text in encode_all(lists, self.vocabulary_)]
        return self._log_likelihoods(self.module_, texts), np.array([len(text) - 1 for text in texts])

    def score_samples(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each text, with its end, in nats.

        Parameters
        ----------
        X : list of str

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
        """
        return self._scored(X)[0]

    def bits_per_character(self, X: Any) -> float:
        """Bits that the model needs for a character of the texts, their ends counted as one character each.

        Parameters
        ----------
        X : list of str

        Returns
        -------
        bits : float
        """
        logs, lengths = self._scored(X)
        return float(-logs.sum() / math.log(2) / lengths.sum())

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the bits for a character: greater is better.

        Parameters
        ----------
        X : list of str
        y : ignored

        Returns
        -------
        score : float
        """
        return -self.bits_per_character(X)

    # ------------------------------------------------------------------------------------------- new text

    def sample(
        self,
        n: int = 200,
        prompt: str = "",
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        random_state: Any = None,
    ) -> str:
        """Text that the model writes, up to n characters or until it ends the text.

        Parameters
        ----------
        n : int, default=200
        prompt : str, default=""
            How the text begins; it is not part of the result.
        temperature : float, default=1.0
            Scores are divided by it: below 1 the text is more probable, above 1 more varied; 0 takes the most probable
            character each time.
        top_k : int, optional
            Only the most probable so many characters are drawn.
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        text : str
        """
        import torch

        from epicycle.nets.training._torch import one_thread_each

        self._check_fitted()
        _check_sampling(n, prompt, temperature, top_k)
        known = token_numbers(self.vocabulary_)
        strange = next((c for c in prompt if c not in known), None)
        if strange is not None:
            raise DataError(f"prompt: the character {strange!r} did not occur in the texts of the fit")
        rng, module = stream(random_state, "sample"), self.module_
        found: list[str] = []
        with one_thread_each(), torch.no_grad():
            tokens = torch.tensor([[END, *(known[c] for c in prompt)]], device=module.carried.device)
            scores, state = module.advance(tokens, module.start(1))
            while len(found) < n:
                token = _drawn(scores[0, -1].double().cpu().numpy(), temperature, top_k, rng)
                if token == END:
                    break
                found.append(self.vocabulary_[token - N_SPECIAL])
                scores, state = module.advance(torch.tensor([[token]], device=tokens.device), state)
        return "".join(found)


def _check_sampling(n: Any, prompt: Any, temperature: Any, top_k: Any) -> None:
    def whole(value: Any) -> bool:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1

    if not whole(n):
        raise ParameterError(f"n={n!r}; expected a number of characters, at least 1")
    if not isinstance(prompt, str):
        raise ParameterError(f"prompt={prompt!r}; expected a text (str), got {type(prompt).__name__}")
    if not isinstance(temperature, numbers.Real) or not 0 <= float(temperature) < math.inf:
        raise ParameterError(f"temperature={temperature!r}; expected a number, at least 0")
    if top_k is not None and not whole(top_k):
        raise ParameterError(f"top_k={top_k!r}; expected a number of characters, at least 1, or None")


def _drawn(scores: np.ndarray, temperature: float, top_k: int | None, rng: np.random.Generator) -> int:
    """A token by its score; never padding or the unknown character."""
    scores = scores.copy()
    scores[[PADDING, UNKNOWN]] = -np.inf
    if not np.isfinite(scores.max()):
        raise ConvergenceError(
            "CharacterModel: the scores of the next character are not finite: the fit has diverged; a smaller "
            "learning_rate_init may help"
        )
    if temperature == 0:
        return int(scores.argmax())
    if top_k is not None and top_k < len(scores):
        scores[scores < np.partition(scores, -top_k)[-top_k]] = -np.inf
    scores = (scores - scores.max()) / temperature
    chances = np.exp(scores)
    return int(rng.choice(len(chances), p=chances / chances.sum()))
