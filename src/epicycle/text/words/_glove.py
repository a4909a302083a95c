"""`GloVe`: vectors of words whose products are logarithms of how often they occur together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from epicycle._native import words as native
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Domain, Real
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.text.words._learner import WordLearner

Array = np.ndarray


class GloVe(WordLearner):
    r"""Vectors of words from a weighted factorisation of their co-occurrences (Pennington, Socher, Manning, 2014).

    .. math:: \min \; \tfrac{1}{2} \sum_{i,j} f(X_{ij}) \big( w_i' c_j + a_i + b_j - \log X_{ij} \big)^2, \qquad
              f(x) = \min\{1, (x / x_{\max})^{\alpha}\},

    where :math:`X_{ij}` adds up the inverse distances of i and j over all windows. AdaGrad takes one entry after the
    other in random order; the vector of a word is :math:`w_i + c_i`.

    Parameters
    ----------
    x_max : float, default=100.0
        Count from which on entries have full weight.
    alpha : float, default=0.75
        Power of smaller counts.
    learning_rate : float, default=0.05
        Step of AdaGrad.

    Attributes
    ----------
    n_entries_ : int
        Pairs of words, in both orders, that occur together.

    Examples
    --------
    >>> from epicycle import GloVe
    >>> texts = ["the cat sat on the mat", "the dog sat on the rug", "a cat and a dog met"] * 20
    >>> model = GloVe(vector_size=8, min_count=1, random_state=0).fit(texts)
    >>> bool((np.diff(model.history_["objective"]) < 0).all()), model.certificate_.holds
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **WordLearner._parameters,
        "x_max": Real(minimum=0, inclusive=False),
        "alpha": Real(minimum=0, maximum=10),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="text", catalogue=("E18",), engines=("memory", "files"), certificate="loss"
    )

    n_entries_: int

    @stores_arguments
    def __init__(
        self,
        vector_size: int = 100,
        *,
        window: int = 10,
        min_count: int = 5,
        x_max: float = 100.0,
        alpha: float = 0.75,
        learning_rate: float = 0.05,
        epochs: int = 25,
        max_words: int | None = None,
        tokenizer: Any = None,
        lock_free: bool = False,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GloVe:
        """Learn the vectors."""
        corpus, state = self._fit_data(X, sample_weight), self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        n, d = len(corpus.words), self.vector_size
        i, j, count = native.cooccurrences(corpus.ids, corpus.first, corpus.weight, self.window)
        once, positive = i != j, count > 0
        row = np.concatenate([i[positive], j[once & positive]])
        column = np.concatenate([j[positive], i[once & positive]])
        x = np.concatenate([count[positive], count[once & positive]])
        if len(x) == 0:
            raise DataError("X: no two words of the vocabulary stand in one document; expected longer documents")
        log_x = np.log(x).astype(np.float32)
        f = np.minimum(1.0, (x / self.x_max) ** self.alpha).astype(np.float32)
        start, width = stream(seed, "start"), self._padded()
        W, C, biases = np.zeros((n, width), np.float32), np.zeros((n, width), np.float32), np.zeros((4, n), np.float32)
        for M in (W, C):
            M[:, :d] = (start.random((n, d)) - 0.5) / d
        biases[:2] = (start.random((2, n)) - 0.5) / d
        biases[2:] = 1.0  # sums of squares begin at one, as in the authors' program
        squares = np.ones((n, width), np.float32), np.ones((n, width), np.float32)
        arrays, begin = (W, C, *squares, biases), 0
        if state is not None:
            for number, M in enumerate(arrays):
                M[:] = state[f"array{number}"]
            begin = int(state["epoch"])
        before = float(f @ log_x.astype(np.float64) ** 2) / (2 * len(x))  # of vectors of zero
        monitor, loss, stopped = self._monitor(self.epochs, self._of(corpus)), before, None
        for epoch in range(begin, self.epochs):
            order = stream(seed, "order", epoch).permutation(len(x))
            loss = native.glove_epoch(row, column, log_x, f, order, *arrays, self.learning_rate, self._threads()) / len(
                x
            )
            saved = {**{f"array{k}": M for k, M in enumerate(arrays)}, "epoch": epoch + 1, "seed": seed}
            if monitor(epoch + 1, (W + C).ravel(), objective=loss, state=partial(dict, saved)):
                stopped = saved
                break
        self.n_entries_ = len(x)
        self._finish(corpus, W + C, monitor, loss, before, stopped)
        return self
