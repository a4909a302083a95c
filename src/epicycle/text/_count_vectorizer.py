r"""Documents as counts of terms:  x_ij = how often term j occurs in document i."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.utils import metadata_routing
from sklearn.utils._sparse import _align_api_if_sparse
from sklearn.utils.validation import check_array

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._parameters import AnyOf, Described, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._documents import Documents
from epicycle.text._analysis import DOMAINS, WORDS, Analysis
from epicycle.text._vocabulary import Counts, PythonCounts, Survey, counts_of, joined, recounted, renumbered

_SHARE = AnyOf(Described("a share between 0 and 1", lambda v: not isinstance(v, Integral) and Real(0, 1).accepts(v)))
_FREQUENCY = AnyOf(Integer(minimum=1), _SHARE)


class CountVectorizer(Analysis):
    r"""Documents as a sparse matrix of counts of their terms: words, or n-grams of words or characters.

    .. math:: x_{ij} = \#\{\text{occurrences of term } j \text{ in document } i\}

    Columns are the terms in the order of their code points. Documents may come from an iterator or from files larger
    than memory: `fit` keeps terms and counts alone, and `transform_batches` gives the rows in batches.

    Examples
    --------
    >>> from epicycle import CountVectorizer
    >>> counts = CountVectorizer(stop_words="english")
    >>> X = counts.fit_transform(["The cat sat on the mat.", "The dog chased the cat."])
    >>> counts.get_feature_names_out()
    array(['cat', 'chased', 'dog', 'mat', 'sat'], dtype=object)
    >>> X.toarray()
    array([[1, 0, 0, 1, 1],
           [1, 1, 1, 0, 0]])
    """

    _docs: ClassVar[dict[str, str]] = {
        "max_df": "max_df, min_df : float or int\n"
        "    Terms in more documents, or in fewer, are left out: a share of all if a float, a number if an int.",
        "max_features": "max_features : int or None, default={default}\n"
        "    Only the terms that occur most often are kept.",
        "vocabulary": "vocabulary : mapping or iterable, optional\n"
        "    Terms to count, with their columns if a mapping; no others are looked for then.",
        "max_terms": "max_terms : int or None, default={default}\n"
        "    Most terms that are held after a batch of documents while a vocabulary is found. None counts all, in one\n"
        "    pass. Otherwise the rarest terms are dropped where there are more, and where documents can be read again\n"
        "    those that are left are counted exactly in a second pass; the certificate tells whether any is missing.",
        "vocabulary_": "vocabulary_ : dict\n    The column of each term.",
        "fixed_vocabulary_": "fixed_vocabulary_ : bool\n    Whether the terms were given.",
        "document_frequency_": "document_frequency_ : ndarray of shape (n_features,)\n"
        "    Documents in which a term occurs.",
        "n_documents_": "n_documents_ : int\n    Documents of the fit.",
        "certificate_": "certificate_ : Certificate\n"
        "    Documents that a term missing from the vocabulary may be in, against `min_df`; 0 if all were counted.",
    }
    _documented_attributes = ("vocabulary_", "fixed_vocabulary_", "document_frequency_", "n_documents_")
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DOMAINS,
        "max_df": _FREQUENCY,
        "min_df": _FREQUENCY,
        "max_features": NoneOr(Integer(minimum=1)),
        "vocabulary": NoneOr(InstanceOf(Mapping, Iterable)),
        "max_terms": NoneOr(Integer(minimum=2)),
    }
    _card: ClassVar[MethodCard] = MethodCard("text", ("E8", "E14"), ("memory", "files"), "missed document frequency")
    # scikit-learn's routing of metadata: documents are no metadata.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"raw_documents": metadata_routing.UNUSED}
    __metadata_request__transform: ClassVar[dict[str, Any]] = {"raw_documents": metadata_routing.UNUSED}

    max_df: float
    min_df: float
    max_features: int | None
    vocabulary: Any
    binary: bool
    dtype: Any
    max_terms: int | None
    vocabulary_: dict[Any, int]
    fixed_vocabulary_: bool
    document_frequency_: np.ndarray
    n_documents_: int

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
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.int64,
        max_terms: int | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, raw_documents: Any, y: Any = None) -> Self:
        """Learn the terms of documents."""
        self._learn(raw_documents, keep=False)
        return self

    @fitting
    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Learn the terms of documents, and count them."""
        return self._learn(raw_documents, keep=True)

    def transform(self, raw_documents: Any) -> Any:
        """Count the known terms."""
        documents = Documents(raw_documents)
        self._check_vocabulary()
        return _align_api_if_sparse(self._counted(documents))

    def transform_batches(self, raw_documents: Any) -> Iterator[Any]:
        """Count the known terms of some thousand documents at a time, for documents that do not fit into memory.

        Yields
        ------
        sparse matrix of shape (n_batch, n_features)
        """
        documents = Documents(raw_documents)
        self._check_vocabulary()
        counts = counts_of(self, self.get_feature_names_out())
        first = 0
        for batch in documents.batches():
            yield _align_api_if_sparse(self._matrix([counts.known(batch, first)], len(batch)))
            first += len(batch)

    def inverse_transform(self, X: Any) -> list[np.ndarray]:
        """The terms that have an entry other than zero, of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of counts.

        Returns
        -------
        list of arrays
        """
        self._check_vocabulary()
        X = sp.csr_array(check_array(X, accept_sparse="csr"))
        names = self.get_feature_names_out()
        names = names.astype(str) if all(isinstance(name, str) for name in names) else names
        return [names[X.indices[a:b][X.data[a:b] != 0]] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The terms in the order of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of shape (n_features,)
        """
        self._check_vocabulary()
        names = self._names_by_column()
        found = np.empty(len(names), dtype=object)
        found[:] = names
        return found

    # ---------------------------------------------------------------- what they share

    def _names_by_column(self) -> list[Any]:
        return sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)

    def _matrix(self, rows: list[Any], n: int) -> sp.csr_array:
        X = joined(rows, (n, len(self.vocabulary_)), self.dtype)
        if self.binary:
            X.data.fill(1)
        return X

    def _counted(self, documents: Documents) -> sp.csr_array:
        """The matrix of documents in the terms of `vocabulary_`."""
        counts: Counts | None = None
        rows, n = [], 0
        for batch in documents.batches():
            characters = sum(len(text) for text in batch if isinstance(text, str | bytes))
            if counts is None and (n > 0 or characters > len(self.vocabulary_)):
                counts = counts_of(self, self._names_by_column())
            if counts is None:  # a table of all terms would take longer than these documents
                few = PythonCounts(self.build_analyzer(), ())
                few.ids = self.vocabulary_
                rows.append(few.known(batch, n))
            else:
                rows.append(counts.known(batch, n))
            n += len(batch)
        return self._matrix(rows, n)

    def _learn(self, raw_documents: Any, *, keep: bool) -> Any:
        documents = self._fit_data(raw_documents)
        self._check_given_vocabulary()
        if self.fixed_vocabulary_:
            self._warn_of_upper_case()
            X = self._counted(documents)
            self.n_documents_ = X.shape[0]
            self.document_frequency_ = np.bincount(X.indices, minlength=X.shape[1])
            self._conclude_directly(
                Certificate("missed document frequency", 0, 0, "the terms were given"), objective=0.0
            )
            return _align_api_if_sparse(X)
        two_passes = self.max_terms is not None
        if two_passes and keep and documents.once:
            raise DataError(
                "raw_documents: an iterator, which can be read once; with max_terms documents are read again to be "
                "counted: give a list or text.read_lines(...), or call fit"
            )
        limit = None if self.max_terms is None else int(self.max_terms)
        survey = Survey(counts_of(self), documents, keep=keep and not two_passes, max_terms=limit)
        if two_passes and survey.missed and not documents.once:
            survey = recounted(survey, documents)
        to, least = self._limited(survey)
        kept = np.flatnonzero(to >= 0)
        self.n_documents_ = survey.n_documents
        self.document_frequency_ = np.empty(len(kept), dtype=np.int64)
        self.document_frequency_[to[kept]] = survey.documents[kept]
        in_order = kept[np.argsort(to[kept])]
        self.vocabulary_ = dict(zip(survey.counts.names(in_order), range(len(kept)), strict=True))
        self._conclude_directly(
            self._missed(survey, in_order, least, exact=not (two_passes and documents.once)),
            objective=float(survey.missed),
            documents=survey.n_documents,
            terms=len(kept),
        )
        if not keep:
            return None
        if two_passes:
            return _align_api_if_sparse(self._counted(documents))
        return _align_api_if_sparse(self._matrix([renumbered(survey.rows, to, self.n_jobs)], survey.n_documents))

    def _limited(self, survey: Survey) -> tuple[np.ndarray, float]:
        """The column of each term of a survey, negative where it is left out, and the least number of documents."""
        n = survey.n_documents
        if not survey.counts.size() and not survey.missed:
            raise DataError("empty vocabulary; perhaps the documents only contain stop words")
        most = self.max_df if isinstance(self.max_df, Integral) else self.max_df * n
        least = self.min_df if isinstance(self.min_df, Integral) else self.min_df * n
        if most < least:
            raise ParameterError(
                f"max_df corresponds to < documents than min_df: max_df={self.max_df!r}, min_df={self.min_df!r} of {n}"
            )
        order = survey.counts.order()
        documents = survey.documents[order]
        kept = order[(documents <= most) & (documents >= least)]
        if self.max_features is not None and len(kept) > self.max_features:
            frequency = (survey.documents if self.binary else survey.occurrences)[kept]
            # The type and the sort of scikit-learn, whose order of ties this is.
            frequency = frequency.astype(np.zeros(1, dtype=self.dtype).sum().dtype)
            kept = kept[np.sort((-frequency).argsort()[: int(self.max_features)])]
        if not len(kept):
            raise DataError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
        to = np.full(len(order), -1, dtype=np.int64)
        to[kept] = np.arange(len(kept))
        return to, float(least)

    def _missed(self, survey: Survey, kept: np.ndarray, least: float, *, exact: bool) -> Certificate:
        kind = "missed document frequency"
        if not survey.missed:
            return Certificate(kind, 0, 0, "every term of every document was counted")
        tolerance = np.ceil(least) - 1 if exact else 0
        rare = float((survey.documents if self.binary else survey.occurrences)[kept].min())
        missed = survey.missed if self.binary else survey.missed_occurrences
        if exact and self.max_features is not None and len(kept) == self.max_features and rare > missed:
            return Certificate(kind, 0, tolerance, "no term that occurs as often as those kept was dropped")
        how = "counted in a second pass" if exact else "counted from when they were kept: read documents twice for all"
        meaning = f"terms in more than {survey.missed} documents are all there, {how}"
        return Certificate(kind, survey.missed, tolerance, meaning)

    # ---------------------------------------------------------------- vocabularies that are given

    def _check_given_vocabulary(self) -> None:
        """Set `fixed_vocabulary_`, and `vocabulary_` where it was given."""
        given = self.vocabulary
        self.fixed_vocabulary_ = given is not None
        if given is None:
            return
        if isinstance(given, Mapping):
            columns = set(given.values())
            if len(columns) != len(given):
                raise ParameterError("vocabulary: Vocabulary contains repeated indices.")
            missing = next((i for i in range(len(given)) if i not in columns), None)
            if missing is not None:
                raise ParameterError(f"Vocabulary of size {len(given)} doesn't contain index {missing}.")
            found = dict(given)
        else:
            found = {}
            for i, term in enumerate(sorted(given) if isinstance(given, set) else given):
                if found.setdefault(term, i) != i:
                    raise ParameterError(f"vocabulary: Duplicate term in vocabulary: {term!r}")
        if not found:
            raise ParameterError("empty vocabulary passed to fit")
        self.vocabulary_ = found

    def _check_vocabulary(self) -> None:
        if not hasattr(self, "vocabulary_"):
            self._check_given_vocabulary()
            if not self.fixed_vocabulary_:
                raise NotFittedError(f"{type(self).__name__}: Vocabulary not fitted or provided; call 'fit' first")
        if not self.vocabulary_:
            raise DataError("Vocabulary is empty")

    def _warn_of_upper_case(self) -> None:
        if self.lowercase and any(any(map(str.isupper, term)) for term in self.vocabulary_ if isinstance(term, str)):
            warnings.warn(
                "Upper case characters found in vocabulary while 'lowercase' is True. These entries will not be "
                "matched with any documents",
                stacklevel=4,
            )
