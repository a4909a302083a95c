r"""Latent semantic indexing:  rows of weights W = U diag(s) V of rank k;  documents W V', terms V' diag(s)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.core._parameters import Choice, Described, Domain, Integer, NoneOr
from epicycle.core._random import stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data, Scan
from epicycle.data._documents import Lines
from epicycle.decomposition.pca._projection import Projection
from epicycle.decomposition.pca._spectrum import DIRECT, Spectrum, number_of_axes
from epicycle.linalg._leading_eigenpairs import largest_outside, leading_eigenpairs
from epicycle.linalg._signs import oriented
from epicycle.text._count_vectorizer import CountVectorizer
from epicycle.text._tfidf_transformer import csr_rows, document_frequencies, inverse_frequencies, weighed
from epicycle.text._tfidf_vectorizer import TfidfVectorizer

_MOST_PRODUCTS = 300
_COSINES = 1 << 22  # held at a time while queries are answered
_NAMED = 8  # unknown words, and queries without any known one, that a message lists
_RANK = 1e-14  # squared singular values below this share of the largest are rounding


class Found(NamedTuple):
    """The documents of a search, the nearest first, and the cosines of their angles to the query."""

    documents: np.ndarray
    similarities: np.ndarray


class LatentSemanticIndexing(Projection):
    r"""Documents and terms in a few dimensions, where words that are used alike are near each other.

    .. math:: W \approx U \,\mathrm{diag}(s)\, V, \qquad z = w V', \qquad
        \cos(q, d) = \frac{z_q' z_d}{|z_q| |z_d|}

    with the k largest singular values of the tf-idf weights W. A query finds documents that have none of its words. The
    fitted object keeps the training documents as k coordinates each, which `search` looks through.

    Parameters
    ----------
    n_components : int, default=100
        k; fewer where documents or terms span fewer dimensions.
    vectorizer : vectoriser or None, default=None
        What counts the terms of documents; None is :class:`CountVectorizer`. Tables of counts need none.
    weights : {"tfidf", "log-tfidf"} or None, default="tfidf"
        What becomes of counts: tf-idf, the same of 1 + log(count), or nothing, for a vectoriser or table of weights.
    tol : float, default=1e-06
        Residual of the singular vectors at which the fit ends.
    max_iter : int, default=300
        Most products with the table.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        V: terms as columns, the largest entry of each row positive.
    singular_values_ : ndarray of shape (n_components,)
        s.
    document_vectors_ : ndarray of shape (n_samples, n_components)
        Coordinates of the documents that can be found.
    idf_ : ndarray of shape (n_features,)
        Weights of the terms; not there with ``weights=None``.
    vectorizer_ : vectoriser
        As fitted; not there if the fit was to a table.
    certificate_ : Certificate
        The largest residual of a singular vector, and a bound on the singular values that are left out.

    Examples
    --------
    >>> from epicycle import LatentSemanticIndexing
    >>> texts = ["car fuel road", "automobile fuel road", "car road", "sweet cake", "cake sugar sweet"]
    >>> index = LatentSemanticIndexing(2, random_state=0).fit(texts)
    >>> sorted(index.search("automobile", 3).documents.tolist())  # two of them do not have the word
    [0, 1, 2]
    >>> sorted(term for term, _ in index.similar_terms("car", 3))
    ['automobile', 'fuel', 'road']
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": Integer(minimum=1),
        "vectorizer": NoneOr(
            Described(
                "a vectoriser, with fit_transform and transform",
                lambda v: not isinstance(v, type) and hasattr(v, "fit_transform") and hasattr(v, "transform"),
            )
        ),
        "weights": NoneOr(Choice("tfidf", "log-tfidf")),
    }
    _docs: ClassVar[dict[str, str]] = {
        "X": "X : iterable of documents; or array, sparse matrix, data frame, scan or Dask collection of counts",
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="text",
        catalogue=("E8",),
        engines=("memory", "files", "dask"),
        certificate="eigenvalue residual",
        keeps_rows=True,
    )

    n_components: int
    vectorizer: Any
    weights: str | None
    tol: float
    max_iter: int
    n_jobs: int | None
    singular_values_: np.ndarray
    document_vectors_: np.ndarray
    idf_: np.ndarray
    vectorizer_: Any

    @stores_arguments(tol=1e-6, max_iter=_MOST_PRODUCTS, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_components: int = 100,
        *,
        vectorizer: Any = None,
        weights: str | None = "tfidf",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the dimensions of documents X."""
        if is_text(X):
            X = self._vectorised(X)
        data = self._fit_data(X, None, sample_weight, target="none")
        weight, n_rows, documents = engine.sum(_frequencies, data, n_jobs=self.n_jobs)
        if self.weights is not None:
            self.idf_ = inverse_frequencies(documents, weight, smooth=True, dtype=np.float64)
        how = self._how()
        if isinstance(data, ArrayData):  # weighed once, not in every pass
            data, how = ArrayData(_weighed_rows(data.X, how), None, data.weight), None
        k = min(int(self.n_components), number_of_axes(weight, n_rows, data.n_features))
        rng = stream(self.random_state, "latent semantic indexing")

        def product(V: np.ndarray) -> np.ndarray:
            return np.asarray(engine.sum(_product, data, V, how, n_jobs=self.n_jobs)[0])

        def lengths(V: np.ndarray) -> np.ndarray:
            return np.asarray(np.sqrt(engine.sum(_lengths, data, V, how, n_jobs=self.n_jobs)[0]))[None, :]

        options = {"tol": float(self.tol), "max_products": int(self.max_iter)}
        found = leading_eigenpairs(product, data.n_features, k, rng, n_more=10, **options)  # type: ignore[arg-type]
        rank = max(int((found.values > _RANK * found.values[0]).sum()), 1)
        outside = largest_outside(lengths, found.vectors, rng)
        total = float(engine.sum(_squares, data, how, n_jobs=self.n_jobs)[0])
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.components_ = oriented(found.vectors[:rank].T).T.astype(dtype)
        self.singular_values_ = np.sqrt(found.values[:rank])  # weights of documents may be beyond float32
        self.document_vectors_ = _in_memory(engine.map(_coordinates, data, self.components_, how, n_jobs=self.n_jobs))
        mean, limit = np.zeros(data.n_features), max(float(self.tol), DIRECT)
        self._conclude_spectrum(
            Spectrum(
                *(found.values, found.vectors, mean, weight, n_rows, total, found.residual, limit, found.residuals),
                outside=outside,
            )
        )
        return self

    def transform(self, X: Any) -> Any:
        """The coordinates of documents: those of the fit, or others, folded in."""
        return engine.map(_coordinates, self._table(X), self.components_, self._how(), n_jobs=self.n_jobs)

    def reconstruction_error(self, X: Any) -> Any:
        """The squared distance of the weights of every document from the space of the components.

        Returns
        -------
        array of shape (n_samples,)
        """
        return engine.map(_distances, self._table(X), self.components_, self._how(), n_jobs=self.n_jobs)

    def fold_in(self, X: Any) -> Self:
        """Add documents to those that `search` finds; dimensions and weights of terms stay as they are."""
        more = _in_memory(self.transform(X))
        self.document_vectors_ = np.concatenate([self.document_vectors_, more])
        return self

    def search(self, query: Any, n_documents: int = 10) -> Found:
        """The documents nearest to a query, by the cosine of the angle.

        Parameters
        ----------
        query : str, or documents or rows of counts
            What is looked for. Words of a text that the fit does not know are passed over with a warning; a text of
            which it knows none is an error, among several a warning and cosines of 0.
        n_documents : int, default=10
            How many are returned, at most.

        Returns
        -------
        Found
            Numbers of documents, the nearest first, and cosines: vectors for one text, a row for each of several.
        """
        if not Integer(minimum=1).accepts(n_documents):
            raise ParameterTypeError(f"n_documents={n_documents!r}: expected an integer >= 1")
        one = isinstance(query, str | bytes)
        table = self._table([query] if one else query)
        if one:
            self._check_words(query, table)
        elif is_text(query):
            _warn_of_unknown_texts(table)
        Q = unit_rows(_in_memory(engine.map(_coordinates, table, self.components_, self._how(), n_jobs=self.n_jobs)))
        Z = unit_rows(self.document_vectors_)
        n = min(int(n_documents), len(Z))
        found = Found(np.empty((len(Q), n), dtype=np.int64), np.empty((len(Q), n), dtype=Z.dtype))
        step = max(_COSINES // max(len(Z), 1), 1)
        for start in range(0, len(Q), step):
            rows = slice(start, start + step)
            cosines = Q[rows] @ Z.T
            found.documents[rows] = np.argsort(-cosines, axis=1, kind="stable")[:, :n]
            found.similarities[rows] = np.take_along_axis(cosines, found.documents[rows], axis=1)
        return Found(found.documents[0], found.similarities[0]) if one else found

    def _check_words(self, query: str | bytes, table: Any) -> None:
        """Name the words of a query that the fit does not know: in an error where that is all of them."""
        unknown = [repr(term) for term in _unknown_terms(self.vectorizer_, query)]
        named = ", ".join(unknown[:_NAMED]) + (f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else "")
        known = self.components_.shape[1]
        if csr_rows(table.X).nnz == 0:
            what = f"knows none of {named}" if unknown else "finds no terms in it"
            raise DataError(f"query={query!r:.80}: the fit {what}; expected some of its {known:,} terms, see terms()")
        if unknown:
            warnings.warn(
                f"query={query!r:.80}: passed over {named}, not among the {known:,} terms of the fit",
                EpicycleWarning,
                stacklevel=3,
            )

    def similar_terms(self, term: str, n_terms: int = 10) -> list[tuple[str, float]]:
        """The terms that are used most like a term, and the cosines of their angles to it.

        Parameters
        ----------
        term : str
            A term that the fit knows.
        n_terms : int, default=10
            How many are returned, at most.

        Returns
        -------
        list of (term, cosine)
        """
        if not Integer(minimum=1).accepts(n_terms):
            raise ParameterTypeError(f"n_terms={n_terms!r}: expected an integer >= 1")
        self._check_fitted()
        names = self.terms()
        at = {name: j for j, name in enumerate(names)}
        if term not in at:
            raise DataError(f"term={term!r}: not among the {len(names)} terms of the fit")
        vectors = unit_rows(self.components_.T * self.singular_values_)
        cosines = vectors @ vectors[at[term]]
        order = [j for j in np.argsort(-cosines, kind="stable") if j != at[term]][: int(n_terms)]
        return [(names[j], float(cosines[j])) for j in order]

    def terms(self) -> list[str]:
        """The terms in the order of the columns; x0, x1, ... where the fit was to a table without names.

        Returns
        -------
        list of str
        """
        self._check_fitted()
        if hasattr(self, "vectorizer_"):
            return [str(name) for name in self.vectorizer_.get_feature_names_out()]
        return self._names()

    # ---------------------------------------------------------------- documents and tables

    def _vectorised(self, documents: Any) -> Any:
        """Counts of documents by a vectoriser of their own."""
        if self.weights is not None and isinstance(self.vectorizer, TfidfVectorizer):
            raise ParameterError(f"weights={self.weights!r}: the vectorizer has weights already; expected None")
        self.vectorizer_ = CountVectorizer(n_jobs=self.n_jobs) if self.vectorizer is None else clone(self.vectorizer)
        return _floats(self.vectorizer_.fit_transform(documents))

    def _table(self, X: Any) -> Data:
        self._check_fitted()
        if is_text(X):
            if not hasattr(self, "vectorizer_"):
                raise DataError("X: documents, but the fit was to a table of counts; expected rows of counts")
            X = _floats(self.vectorizer_.transform(X))
        return self._predict_data(X)

    def _how(self) -> tuple[np.ndarray, bool] | None:
        """(weights of terms, whether counts become logarithms), or None for rows that have weights."""
        return None if self.weights is None else (self.idf_, self.weights == "log-tfidf")


def is_text(X: Any) -> bool:
    """Whether X is documents, not a table of numbers."""
    if isinstance(X, Scan):
        return len(X.columns) == 1 and bool(X.text_columns)
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        return len(frame.columns) == 1 and frame[frame.columns[0]].dtype in (nw.String, nw.Object)
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind in "US" or (X.dtype == object and _first_is_text(X)))
    if isinstance(X, list | tuple) or nw.dependencies.is_into_series(X):
        return _first_is_text(X)
    arrow = type(X).__module__.startswith("pyarrow")
    return isinstance(X, Lines | str | bytes) or arrow or (not sp.issparse(X) and hasattr(X, "__next__"))


def _first_is_text(X: Any) -> bool:
    return any(isinstance(item, str | bytes) for item in list(X[:1]))


def _unknown_terms(vectorizer: Any, query: str | bytes) -> list[str]:
    """The words of a text without a column, each once; none for terms that are no words or have no list."""
    if not hasattr(vectorizer, "vocabulary_") or not hasattr(vectorizer, "build_analyzer"):
        return []
    if vectorizer.analyzer in ("char", "char_wb"):
        return []
    terms = dict.fromkeys(vectorizer.build_analyzer()(query))
    spaces = None if callable(vectorizer.analyzer) else vectorizer.ngram_range[0] - 1  # not of longer n-grams
    unknown = (str(term) for term in terms if term not in vectorizer.vocabulary_)
    return [term for term in unknown if spaces is None or term.count(" ") == spaces]


def _warn_of_unknown_texts(table: Any) -> None:
    empty = np.flatnonzero(np.diff(csr_rows(table.X).indptr) == 0).tolist()
    if empty:
        named = ", ".join(map(str, empty[:_NAMED])) + (", ..." if len(empty) > _NAMED else "")
        warnings.warn(
            f"query: {len(empty):,} of {table.n_rows:,} texts have no term that the fit knows, cosines are 0 "
            f"(positions {named})",
            EpicycleWarning,
            stacklevel=3,
        )


def unit_rows(Z: np.ndarray) -> np.ndarray:
    """Rows of length one; those of length zero stay so."""
    largest = np.abs(Z).max(axis=1, initial=0.0, keepdims=True)
    Z = Z / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.asarray(Z / np.where(length > 0, length, 1.0))


def _floats(X: Any) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _in_memory(Z: Any) -> np.ndarray:
    return np.asarray(Z.compute() if hasattr(Z, "compute") else Z)


def _weighed_rows(X: Any, how: tuple[np.ndarray, bool] | None) -> Any:
    rows = csr_rows(X)
    return rows if how is None else weighed(rows, how[0], sublinear=how[1], norm="l2", n_jobs=1)


def _frequencies(batch: Batch) -> tuple[float, int, np.ndarray]:
    weight, documents = document_frequencies(batch)
    return weight, batch.n_rows if batch.weight is None else int(np.count_nonzero(batch.weight)), documents


def _product(batch: Batch, V: np.ndarray, how: tuple[np.ndarray, bool] | None) -> tuple[np.ndarray]:
    W = _weighed_rows(batch.X, how)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by name
        T = np.asarray(W @ V)
        return (np.asarray(W.T @ (T if batch.weight is None else T * batch.weight[:, None])),)


def _lengths(batch: Batch, V: np.ndarray, how: tuple[np.ndarray, bool] | None) -> tuple[np.ndarray]:
    T = np.asarray(_weighed_rows(batch.X, how) @ V)
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return (w @ np.square(T),)


def _squares(batch: Batch, how: tuple[np.ndarray, bool] | None) -> tuple[float]:
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return (float(w @ _row_squares(_weighed_rows(batch.X, how))),)


def _row_squares(W: Any) -> np.ndarray:
    return np.asarray(W.multiply(W).sum(axis=1), dtype=np.float64).ravel()


def _coordinates(batch: Batch, axes: np.ndarray, how: tuple[np.ndarray, bool] | None) -> np.ndarray:
    return np.asarray(_weighed_rows(batch.X, how) @ axes.T, dtype=batch.X.dtype)


def _distances(batch: Batch, axes: np.ndarray, how: tuple[np.ndarray, bool] | None) -> np.ndarray:
    W = _weighed_rows(batch.X, how)
    return np.asarray((_row_squares(W) - np.square(np.asarray(W @ axes.T)).sum(axis=1)).clip(min=0.0))
