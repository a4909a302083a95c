r"""Questions about stories by an end-to-end memory network:  minimise  mean_i v_i l(W u_{K+1}(x_i), y_i)  with

    u_{k+1} = u_k + sum_j p_j c_j,   p = softmax(u_k' m_1, u_k' m_2, ...),

where u_1 is the question, and m_j and c_j are vectors of the j-th sentence of the story.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Boolean, Domain, Integer, Real
from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.nets._tasks import NetClassifier
from epicycle.nets.attention._pairs import as_pairs, as_stories
from epicycle.nets.sequences._tokens import as_token_lists, build_vocabulary, encode_all
from epicycle.nets.training._options import NET_DEFAULTS, NetArguments


class MemoryQA(NetClassifier):
    r"""Answers to questions about stories, by an end-to-end memory network.

    .. math:: u_{k+1} = u_k + \sum_j p_j c_j, \qquad p = \mathrm{softmax}(u_k' m_1, u_k' m_2, \dots), \qquad
              f(x) = W u_{K+1},

    where :math:`u_1` is the question, and :math:`m_j`, :math:`c_j` are vectors of the sentences of the story: what a
    sentence is found by, and what it says. Several hops combine several sentences. An answer is one of the classes.

    Parameters
    ----------
    n_hops : int, default=3
        How often the network looks at the story.
    embedding_size : int, default=32
        Length of the vectors.
    memory_size : int, default=50
        The last so many sentences of a story are kept.
    position_encoding : bool, default=True
        Whether the order of the words in a sentence counts.
    dropout : float, default=0.0
        Probability with which an entry of the last vector is set to zero in a training step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_answers,)
    vocabulary_ : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MemoryQA
    >>> rng, X, y = np.random.default_rng(0), [], []
    >>> for _ in range(400):
    ...     people, places = rng.permutation(["Mary", "John"]), rng.choice(["kitchen", "garden", "office"], 2)
    ...     story = [f"{who} went to the {where}." for who, where in zip(people, places)]
    ...     X.append((story, f"Where is {people[0]}?"))
    ...     y.append(places[0])
    >>> model = MemoryQA(1, embedding_size=16, max_iter=20, learning_rate_init=0.02, random_state=0)
    >>> new = "John went to the garden. Mary went to the office.", "Where is John?"
    >>> model.fit(X, y).predict([new]).tolist()
    ['garden']
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_hops": Integer(1),
        "embedding_size": Integer(1),
        "memory_size": Integer(1),
        "position_encoding": Boolean(),
        "dropout": Real(0, 1, inclusive=(True, False)),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : list of pairs (story, question)\n"
        "    A story is a list of sentences, or a text that is cut into its sentences; a question is a text.",
    }
    _card = MethodCard("nets", ("F5",), ("memory",), "none")
    _module_name = "epicycle.nets.attention._memory_module.MemoryNet"

    n_hops: int
    embedding_size: int
    memory_size: int
    position_encoding: bool
    dropout: float
    vocabulary_: list[str]
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.two_d_array": False}

    @stores_arguments(**{**NET_DEFAULTS, "learning_rate_init": 0.01, "batch_size": 32, "clip_norm": 10.0})
    def __init__(
        self,
        n_hops: int = 3,
        *,
        embedding_size: int = 32,
        memory_size: int = 50,
        position_encoding: bool = True,
        dropout: float = 0.0,
        **shared: Unpack[NetArguments],
    ) -> None: ...

    def _fit_data(  # type: ignore[override]  # pairs, no table
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> tuple[list[list[list[str]]], list[list[str]]]:
        name = type(self).__name__
        stories, questions = as_pairs(X, name, "a story and a question")
        return as_stories(stories, name), as_token_lists(questions, "X", name, analyzer="word", lowercase=True)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        stories, questions = self._fit_data(X, y, sample_weight)
        target, weight = self._learn_labels(y, len(stories), sample_weight)
        kept = range(len(stories)) if weight is None else np.flatnonzero(weight).tolist()
        sentences = [sentence for i in kept for sentence in (*stories[i], questions[i])]
        self.vocabulary_ = build_vocabulary(sentences)
        return self._rows(stories, questions, target, weight)

    def _rows(
        self,
        stories: list[list[list[str]]],
        questions: list[list[str]],
        target: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> Any:
        from epicycle.nets.attention._rows import JointRows
        from epicycle.nets.training._batches import padded

        coded = [encode_all(story[-int(self.memory_size) :], self.vocabulary_) for story in stories]
        widest = max(len(sentence) for story in coded for sentence in story)
        blank = np.zeros(widest, dtype=np.int64)
        tables = [padded([*story, blank], 0)[:-1] for story in coded]  # all as wide as the widest sentence
        lengths = np.array([len(story) for story in coded])
        return JointRows([tables, lengths, encode_all(questions, self.vocabulary_)], target, weight)

    def _architecture(self, rows: Any) -> dict[str, Any]:
        return {
            "n_hops": int(self.n_hops),
            "embedding_size": int(self.embedding_size),
            "memory_size": int(self.memory_size),
            "position_encoding": bool(self.position_encoding),
            "dropout": float(self.dropout),
            "n_tokens": len(self.vocabulary_),
            "n_outputs": 1 if len(self.classes_) == 2 else len(self.classes_),
        }

    def _scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        rows = self._rows(*self._fit_data(X))
        return self._outputs(self.module_, rows)

    def attention_weights(self, X: Any) -> list[np.ndarray]:
        """The weights of the sentences at each hop.

        Parameters
        ----------
        X : list of pairs (story, question)

        Returns
        -------
        weights : list of ndarray of shape (n_hops, n_sentences)
            Rows add up to one. Of stories longer than `memory_size`, the last sentences.
        """
        import torch

        from epicycle.nets.training._torch import device_of, one_thread_each

        self._check_fitted()
        rows, module = self._rows(*self._fit_data(X)), self.module_
        found: list[np.ndarray] = []
        with one_thread_each(), torch.no_grad():
            for batch in rows.in_order(256):
                weights = module.attend(*batch.to(device_of(module)).inputs)[1].cpu().numpy()
                found += [w[:, :n] for w, n in zip(weights, batch.inputs[1].tolist(), strict=True)]
        return found
