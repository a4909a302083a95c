r"""Documents as weights of terms: counts, then tf-idf."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.utils._sparse import _align_api_if_sparse

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import NotFittedError, ParameterError
from epicycle.core._parameters import Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._documents import Documents
from epicycle.text._analysis import WORDS
from epicycle.text._count_vectorizer import CountVectorizer
from epicycle.text._tfidf_transformer import WEIGHT_DOCS, WEIGHT_DOMAINS, inverse_frequencies, weighed


class TfidfVectorizer(CountVectorizer):
    r"""Documents as a sparse matrix of weights of their terms: counts, then :class:`TfidfTransformer`.

    .. math:: x_{ij} = \mathrm{tf}_{ij} \left(1 + \log \frac{1 + n}{1 + n_j}\right), \qquad x_i \leftarrow x_i / |x_i|

    Attributes
    ----------
    idf_ : ndarray of shape (n_features,)
        Weights of the terms; only with ``use_idf=True``.

    Examples
    --------
    >>> from epicycle import TfidfVectorizer
    >>> weights = TfidfVectorizer()
    >>> X = weights.fit_transform(["to be or not to be", "to do is to be", "do be do be do"])
    >>> weights.get_feature_names_out(), X.shape
    (array(['be', 'do', 'is', 'not', 'or', 'to'], dtype=object), (3, 6))
    >>> weights.idf_.round(2)
    array([1.  , 1.29, 1.69, 1.69, 1.69, 1.29])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**CountVectorizer._parameters, **WEIGHT_DOMAINS}
    _docs: ClassVar[dict[str, str]] = {**WEIGHT_DOCS}
    _card: ClassVar[MethodCard] = MethodCard("text", ("E8",), ("memory", "files"), "missed document frequency")

    norm: str | None
    use_idf: bool
    smooth_idf: bool
    sublinear_tf: bool

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Any = None,
        tokenizer: Any = None,
        analyzer: Any = "word",
        stop_words: Any = None,
        token_pattern: str | None = WORDS,
        ngram_range: tuple[int, int] = (1, 1),
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.float64,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
        max_terms: int | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @property
    def idf_(self) -> np.ndarray:
        """Weights of the terms."""
        if "_idf_" not in vars(self):
            raise NotFittedError(f"{type(self).__name__}: idf_ is not fitted yet; call 'fit' with use_idf=True first")
        return self._idf_

    @idf_.setter
    def idf_(self, value: Any) -> None:
        if not self.use_idf:
            raise ParameterError("`idf_` cannot be set when `user_idf=False`.")
        if not hasattr(self, "vocabulary_"):
            self._check_given_vocabulary()
        terms = getattr(self, "vocabulary_", value)
        if len(terms) != len(value):
            raise ParameterError(f"idf length = {len(value)} must be equal to vocabulary size = {len(terms)}")
        self._idf_ = np.asarray(value)

    @fitting
    def fit(self, raw_documents: Any, y: Any = None) -> Self:
        """Learn the terms of documents and their weights."""
        self._learn_weights(raw_documents, keep=False)
        return self

    @fitting
    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Learn the terms of documents and their weights, and weigh them."""
        return self._weighed(self._learn_weights(raw_documents, keep=True))

    def transform(self, raw_documents: Any) -> Any:
        """Weigh the known terms."""
        documents = Documents(raw_documents)
        self._check_weights()
        return self._weighed(self._counted(documents))

    def transform_batches(self, raw_documents: Any) -> Iterator[Any]:
        """Weigh the known terms of some thousand documents at a time, for documents that do not fit into memory.

        Yields
        ------
        sparse matrix of shape (n_batch, n_features)
        """
        self._check_weights()
        for counts in super().transform_batches(raw_documents):
            yield self._weighed(counts)

    def _check_weights(self) -> None:
        if "_idf_" not in vars(self) and not hasattr(self, "n_documents_"):
            raise NotFittedError(f"{type(self).__name__}: The TF-IDF vectorizer is not fitted; call 'fit' first")
        self._check_vocabulary()

    def _learn_weights(self, raw_documents: Any, *, keep: bool) -> Any:
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            warnings.warn(
                f"Only float64 and float32 'dtype' should be used. {self.dtype} will be converted to float64.",
                UserWarning,
                stacklevel=4,
            )
        X = self._learn(raw_documents, keep=keep)
        if self.use_idf:
            dtype = np.float32 if np.dtype(self.dtype) == np.float32 else np.float64
            self._idf_ = inverse_frequencies(
                self.document_frequency_, self.n_documents_, smooth=self.smooth_idf, dtype=dtype
            )
        return X

    def _weighed(self, X: Any) -> Any:
        rows = sp.csr_array(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64))
        idf = vars(self).get("_idf_")
        options: dict[str, Any] = {"sublinear": self.sublinear_tf, "norm": self.norm, "n_jobs": self.n_jobs}
        return _align_api_if_sparse(weighed(rows, idf, copy=False, **options))
