"""`Word2Vec`: vectors of words that predict the words around them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from epicycle._native import words as native
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, Real
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import MethodCard, fitting, stores_arguments
from epicycle.text.words._learner import WordLearner

Array = np.ndarray
_NONE_I, _NONE_F, _NONE_B = np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.uint8)


class Word2Vec(WordLearner):
    r"""Vectors of words that tell the words around a word from others (Mikolov and others, 2013).

    Skip-gram takes a word :math:`c` of the window around :math:`w` as input, CBOW the mean of the window. With negative
    sampling

    .. math:: \min_{u, v} \; - \sum_{(w, c)} \Big[ \log \sigma(u_w' v_c) +
              \sum_{k=1}^{K} \log \sigma(-u_{n_k}' v_c) \Big], \qquad P(n_k = i) \propto \mathrm{count}_i^{3/4},

    and with the hierarchical softmax a product of branches of a Huffman tree on the way to :math:`w`. Steps are
    those of stochastic gradient descent with a rate that falls to `min_learning_rate` in a line; frequent words are
    thinned out.

    Parameters
    ----------
    architecture : {"skip-gram", "cbow"}, default="skip-gram"
        What is the input of a prediction.
    negative : int, default=5
        Negative samples K of each; 0 for none.
    hierarchical : bool, default=False
        Whether to use the hierarchical softmax, instead of negative samples (0) or beside them.
    subsample : float, default=1e-3
        Share of the corpus beyond which occurrences of a word are left out at random; 0 keeps all.
    exponent : float, default=0.75
        Power of the counts by which negative samples are drawn.
    learning_rate : float, default=0.025
        Size of the first steps.
    min_learning_rate : float, default=1e-4
        Size of the last steps.

    Examples
    --------
    >>> from epicycle import Word2Vec
    >>> texts = ["the cat sat on the mat", "the dog sat on the rug", "a cat and a dog met"] * 200
    >>> model = Word2Vec(vector_size=16, min_count=1, random_state=0).fit(texts)
    >>> model.vectors_.shape, model.similarity("cat", "dog") > model.similarity("cat", "on")
    ((10, 16), True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **WordLearner._parameters,
        "architecture": Choice("skip-gram", "cbow"),
        "negative": Integer(minimum=0, maximum=1000),
        "hierarchical": Boolean(),
        "subsample": Real(minimum=0),
        "exponent": Real(minimum=-10, maximum=10),
        "min_learning_rate": Real(minimum=0, maximum=10),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="text", catalogue=("E18",), engines=("memory", "files"), certificate="loss"
    )

    @stores_arguments
    def __init__(
        self,
        vector_size: int = 100,
        *,
        architecture: str = "skip-gram",
        window: int = 5,
        min_count: int = 5,
        negative: int = 5,
        hierarchical: bool = False,
        subsample: float = 1e-3,
        exponent: float = 0.75,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        epochs: int = 5,
        max_words: int | None = None,
        tokenizer: Any = None,
        lock_free: bool = False,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Word2Vec:
        """Learn the vectors."""
        if self.negative == 0 and not self.hierarchical:
            raise ParameterError(
                "negative=0, hierarchical=False; expected one of the two, negative samples or a hierarchy"
            )
        corpus, state = self._fit_data(X, sample_weight), self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        n, width = len(corpus.words), self._padded()
        noise = alias_table(corpus.counts**self.exponent) if self.negative else (_NONE_F, _NONE_I)
        ways = huffman_ways(corpus.counts) if self.hierarchical else (np.zeros(0, np.int64), _NONE_I, _NONE_B)
        targets = n * bool(self.negative) + (n - 1) * self.hierarchical  # words, then nodes of the tree
        V, U = np.zeros((n, width), np.float32), np.zeros((targets, width), np.float32)
        V[:, : self.vector_size] = (stream(seed, "start").random((n, self.vector_size)) - 0.5) / self.vector_size
        begin = 0
        if state is not None:
            V[:], U[:], begin = state["V"], state["U"], int(state["epoch"])
        model = native.Word2VecModel(
            window=self.window,
            cbow=self.architecture == "cbow",
            negative=self.negative,
            keep=kept_share(corpus.counts, self.subsample),
            alias_keep=noise[0],
            alias_other=noise[1],
            way_first=ways[0],
            way_node=ways[1],
            way_right=ways[2],
            input=V,
            output=U,
        )
        monitor = self._monitor(self.epochs, self._of(corpus))
        done = corpus.first[:-1] / max(len(corpus.ids), 1)
        loss = guess = 0.0
        stopped = None
        for epoch in range(begin, self.epochs):
            share = (epoch + done) / self.epochs
            rates = (self.learning_rate + (self.min_learning_rate - self.learning_rate) * share) * corpus.weight
            key = int(stream(seed, "epoch", epoch).integers(2**63))
            total, pairs, answers, seen = native.word2vec_epoch(
                model, corpus.ids, corpus.first, rates.astype(np.float32), key, self._threads()
            )
            loss, guess = total / max(pairs, 1), np.log(2) * answers / max(pairs, 1)  # log 2 for each at zero
            facts = {"pairs": float(pairs), "words": float(seen), "learning_rate": float(rates[-1])}
            saved = {"V": V, "U": U, "epoch": epoch + 1, "seed": seed}
            if monitor(epoch + 1, V.ravel(), objective=loss, state=partial(dict, saved), **facts):
                stopped = saved
                break
        self._finish(corpus, V, monitor, loss, guess, stopped)
        return self


def kept_share(counts: Array, subsample: float) -> Array:
    """Probability that an occurrence is kept: (sqrt(z) + 1) / z with z = share of the corpus / subsample, at most 1."""
    if subsample == 0:
        return np.ones(len(counts), np.float32)
    z = np.maximum(counts / counts.sum() / subsample, np.finfo(float).tiny)
    return np.asarray(np.minimum((np.sqrt(z) + 1) / z, 1.0), dtype=np.float32)


def alias_table(weight: Array) -> tuple[Array, Array]:
    """Walker's table: place i, drawn uniformly, is kept with probability keep[i], else it stands for other[i]."""
    n = len(weight)
    scaled = weight / weight.sum() * n
    keep, other = np.ones(n), np.arange(n, dtype=np.int32)
    small, large = list(np.flatnonzero(scaled < 1)), list(np.flatnonzero(scaled >= 1))
    while small and large:
        s, big = small.pop(), large[-1]
        keep[s], other[s] = scaled[s], big
        scaled[big] -= 1 - scaled[s]
        if scaled[big] < 1:
            small.append(large.pop())
    return keep.astype(np.float32), other


def huffman_ways(counts: Array) -> tuple[Array, Array, Array]:
    """Ways from the root of the Huffman tree to each word: where each begins, its nodes, and whether it goes right."""
    n = len(counts)
    heap = [(float(c), i) for i, c in enumerate(counts)]
    heapq.heapify(heap)
    parent, right = np.zeros(2 * n - 1, np.int64), np.zeros(2 * n - 1, np.uint8)
    for node in range(n, 2 * n - 1):
        (a, i), (b, j) = heapq.heappop(heap), heapq.heappop(heap)
        parent[i] = parent[j] = node
        right[j] = 1
        heapq.heappush(heap, (a + b, node))
    ways: list[list[int]] = []
    for word in range(n):
        way, node = [], word
        while node != 2 * n - 2:
            way.append(node)
            node = int(parent[node])
        ways.append(way[::-1])
    below = np.array([node for way in ways for node in way], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum([len(way) for way in ways])]).astype(np.int64)
    return first, (parent[below] - n).astype(np.int32), right[below]
