r"""Documents as sums of signs in columns that a hash of each term gives: no vocabulary, nothing to learn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils._sparse import _align_api_if_sparse

from epicycle import _native
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, check_parameters
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._documents import Documents
from epicycle.text._analysis import DOMAINS, WORDS, Analysis
from epicycle.text._tfidf_transformer import WEIGHT_DOCS, weighed
from epicycle.text._vocabulary import joined


class HashingVectorizer(TransformerMixin, Analysis, auto_wrap_output_keys=None):  # type: ignore[misc]  # untyped
    r"""Documents as a sparse matrix whose columns are hashes of terms: it needs no pass before, and no memory.

    .. math:: x_{ij} = \sum_{t \in d_i,\ |h(t)| \bmod p = j} \mathrm{sign}\, h(t), \qquad x_i \leftarrow x_i / |x_i|

    with p columns and h the 32 bits of MurmurHash3. Two terms may meet in a column; signs make inner products right on
    average.

    Parameters
    ----------
    n_features : int, default=1048576
        p.
    alternate_sign : bool, default=True
        Whether terms have signs.

    Attributes
    ----------
    certificate_ : Certificate
        Nothing is learnt.

    Examples
    --------
    >>> from epicycle import HashingVectorizer
    >>> hashed = HashingVectorizer(n_features=16)
    >>> hashed.transform(["one fish two fish", "red fish blue fish"]).toarray().shape
    (2, 16)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DOMAINS,
        "n_features": Integer(1, np.iinfo(np.int32).max),
        "norm": NoneOr(Choice("l1", "l2")),
        "alternate_sign": Boolean(),
    }
    _docs: ClassVar[dict[str, str]] = {
        "norm": WEIGHT_DOCS["norm"],
        "X": Analysis._docs["raw_documents"].replace("raw_documents", "X", 1),
        "fit_X": Analysis._docs["fit_raw_documents"].replace("raw_documents", "X", 1),
    }
    _card: ClassVar[MethodCard] = MethodCard("text", ("E8",), ("memory", "files"), "closed form")

    n_features: int
    binary: bool
    norm: str | None
    alternate_sign: bool
    dtype: Any
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"requires_fit": False}

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
        stop_words: Any = None,
        token_pattern: str | None = WORDS,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        n_features: int = 2**20,
        binary: bool = False,
        norm: str | None = "l2",
        alternate_sign: bool = True,
        dtype: Any = np.float64,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the arguments; there is nothing to learn, and X is not read."""
        self._fit_data(X)
        self._conclude_directly(Certificate("closed form", 0, 0, "nothing is learnt"))
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Check the arguments; there is nothing to learn, and X is not read."""
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The same as `transform`, after a look at the arguments."""
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        """Hash the terms of documents."""
        documents = Documents(X)
        rows = list(self._hashed(documents))
        n = sum(len(part[2]) - 1 for part in rows)
        return self._finished(joined(rows, (n, int(self.n_features)), self.dtype))

    def transform_batches(self, X: Any) -> Iterator[Any]:
        """Hash some thousand documents at a time, for documents that do not fit into memory.

        Yields
        ------
        sparse matrix of shape (n_batch, n_features)
        """
        for rows in self._hashed(Documents(X)):
            yield self._finished(joined([rows], (len(rows[2]) - 1, int(self.n_features)), self.dtype))

    def _hashed(self, documents: Documents) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        check_parameters(self, self._parameters)
        self._check_ngram_range()
        way, p, signs = self._compiled(), int(self.n_features), bool(self.alternate_sign)
        analyze = self.build_analyzer() if way is None else None
        first = 0
        for batch in documents.batches():
            if way is not None:
                texts, rule, stop, table = way(batch, first)
                threads = n_threads(8.0 * sum(map(len, texts)), self.n_jobs)
                yield _native.text.count_hashed(texts, rule, stop, table, p, signs, threads)
            else:
                assert analyze is not None
                hasher = FeatureHasher(n_features=p, input_type="string", dtype=np.float64, alternate_sign=signs)
                found = sp.csr_array(hasher.transform(analyze(document) for document in batch))
                yield found.data.astype(np.int32), found.indices.astype(np.int32), found.indptr.astype(np.int64)
            first += len(batch)

    def _finished(self, X: sp.csr_array) -> Any:
        if self.binary:
            X.data.fill(1)
        if self.norm is not None:
            rows = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
            X = weighed(rows, None, sublinear=False, norm=self.norm, n_jobs=self.n_jobs, copy=False)
        return _align_api_if_sparse(X)
