"""Common parts of Word2Vec and GloVe: documents in, a vector for each word, documents as means of their words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError
from epicycle.core._parameters import Boolean, Callable, Domain, Integer, NoneOr, Real
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator import Estimator
from epicycle.data._documents import Documents
from epicycle.text.words._corpus import Corpus, read_corpus, tokens_of
from epicycle.text.words._word_search import WordSearch

Array = np.ndarray
_NO_WORSE = 1.05  # of the loss of vectors of zero: a few steps from small random vectors scatter about 1
_PAD = 16  # kernels take rows of a multiple of so many numbers

WORD_DOCS = {
    "X": "X : list, array, column of a frame, iterator, `text.read_lines` of files, or scan of one column\n"
    "    A document is a string, or a sequence of words; windows do not reach beyond it.",
    "sample_weight": "sample_weight : array-like of shape (n_documents,), optional\n"
    "    A document of weight v counts v times: in the counts of words, and in the size of its steps.",
    "vector_size": "vector_size : int, default={default}\n    Numbers of a vector.",
    "window": "window : int, default={default}\n    Farthest distance of two words that are seen together.",
    "min_count": "min_count : int, default={default}\n    Rarer words are left out, and sentences close up.",
    "max_words": "max_words : int, optional\n    Only so many of the most frequent words are kept.",
    "tokenizer": "tokenizer : callable, optional\n"
    "    ``tokenizer(text)`` gives the words of a string; by default runs of letters and digits in lower case.",
    "epochs": "epochs : int, default={default}\n    Passes over the corpus.",
    "lock_free": "lock_free : bool, default={default}\n"
    "    Whether threads change the vectors at the same time without waiting for each other: faster, but two runs\n"
    "    differ a little. Without it one thread works, and the same seed gives the same bits.",
    "n_jobs": "n_jobs : int, optional\n    Threads of the lock-free mode; None takes all.",
    "words_": "words_ : ndarray of str\n    The vocabulary, the most frequent word first.",
    "vectors_": "vectors_ : ndarray of shape (n_words, vector_size), float32\n    A vector for each word.",
    "counts_": "counts_ : ndarray of shape (n_words,)\n    How often each word occurs.",
}


class WordLearner(WordSearch, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]  # untyped
    """Vectors of words from texts; as a transformer it gives the mean of a document's vectors."""

    _docs = WORD_DOCS
    _documented_attributes: ClassVar[tuple[str, ...]] = (
        "words_",
        "vectors_",
        "counts_",
        *Estimator._documented_attributes,
    )
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "vector_size": Integer(minimum=1, maximum=10_000),
        "window": Integer(minimum=1, maximum=10_000),
        "min_count": Real(minimum=0),
        "max_words": NoneOr(Integer(minimum=2)),
        "tokenizer": NoneOr(Callable()),
        "epochs": Integer(minimum=1),
        "learning_rate": Real(minimum=0, maximum=10, inclusive=(False, True)),
        "lock_free": Boolean(),
    }

    words_: Array
    vectors_: Array
    counts_: Array
    vector_size: int
    window: int
    min_count: float
    max_words: int | None
    tokenizer: Any
    epochs: int
    lock_free: bool
    n_jobs: int | None
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "input_tags.string": True,
        "input_tags.two_d_array": False,
        "requires_fit": True,
    }

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.shape[1])

    def _fit_data(self, X: Any, sample_weight: Any) -> Corpus:  # type: ignore[override]  # documents, no table
        return read_corpus(
            X, sample_weight, tokenizer=self.tokenizer, min_count=self.min_count, max_words=self.max_words
        )

    def _threads(self) -> int:
        return n_threads(np.inf, self.n_jobs) if self.lock_free else 1

    def _padded(self) -> int:
        return -(-self.vector_size // _PAD) * _PAD

    def _of(self, corpus: Corpus) -> Any:
        """The function that makes the attributes of a fit out of the padded vectors."""
        return lambda x: {
            "words_": corpus.words,
            "counts_": corpus.counts,
            "vectors_": np.ascontiguousarray(x.reshape(len(corpus.words), -1)[:, : self.vector_size]),
        }

    def _finish(
        self, corpus: Corpus, vectors: Array, monitor: Any, loss: float, first: float, stopped: Mapping[str, Any] | None
    ) -> None:
        """Attributes and evidence; `first` is the loss at zero, `stopped` the state where a callback ended it."""
        if not np.isfinite(vectors).all():
            raise ConvergenceError(
                f"{type(self).__name__}: vectors grew beyond floating point; expected a smaller learning_rate"
            )
        for name, value in self._of(corpus)(vectors).items():
            setattr(self, name, value)
        ratio = loss / first if first > 0 else 0.0
        meaning = (
            f"the last epoch's mean loss was {ratio:.3g} of that of vectors of zero; steps are stochastic, and "
            "nothing is proven about a minimum"
        )
        certificate = Certificate("loss", ratio, _NO_WORSE, meaning)
        history = monitor.history()
        reason = "stopped" if stopped is not None else "converged" if certificate.holds else "diverged"
        n_iter = len(history["objective"])
        self._conclude(Solution(vectors, loss, history, certificate, n_iter, reason, state=stopped or {}))

    def transform(self, X: Any) -> Array:
        """Mean of the vectors of the known words of each document; zeros where there is none.

        Parameters
        ----------
        X : list, array, column of a frame, iterator, `text.read_lines` of files, or scan of one column

        Returns
        -------
        ndarray of shape (n_documents, vector_size), float32
        """
        self._check_fitted()
        rows, nothing = [], np.zeros(self._n_features_out)
        for i, document in enumerate(Documents(X).source):
            places = [self._places_[w] for w in tokens_of(document, self.tokenizer, i) if w in self._places_]
            rows.append(self.vectors_[places].mean(axis=0, dtype=np.float64) if places else nothing)
        return np.array(rows, dtype=np.float32).reshape(len(rows), self._n_features_out)
