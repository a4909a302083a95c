"""Features of texts: weights (tf-idf) of words, of runs of characters, and of runs of letters in sequences.

Runs of characters need no rules of a language, and say something of words that were not seen, or misspelt. What linear
models take as it is, with a column for each run, is condensed into its leading factors (truncated SVD) for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from epicycle.automl.tables._columns import as_text
from epicycle.core._exceptions import DataError
from epicycle.core._settings import config
from epicycle.decomposition import TruncatedSVD
from epicycle.text import TfidfVectorizer

#: Runs at most, the most frequent: a linear model of twenty classes then has below ten million coefficients.
_MAX_RUNS = 200_000
#: Factors at most, and training rows for each of them at least.
_MAX_FACTORS, _ROWS_PER_FACTOR = 48, 10
#: Characters on average beyond which words alone say enough (runs of characters are six times as many), and letters of
#: a word at most on average, where words are separated by spaces.
_LONG, _LETTERS_OF_A_WORD = 500, 15
#: Letters of sequences that are all of the same length, up to which each place is a category.
MAX_PLACES = 200


def _vectorizers(kind: str, texts: list[str]) -> list[TfidfVectorizer]:
    """The vectorizers of a column: in a few rows a term of one row says something, among many it is noise."""
    least = 1 if len(texts) < 1_000 else 2
    if kind == "sequence":
        return [TfidfVectorizer(analyzer="char", ngram_range=(1, 5), min_df=2, sublinear_tf=True, max_features=50_000)]
    words = TfidfVectorizer(
        token_pattern=r"(?u)\b\w+\b", ngram_range=(1, 2), min_df=least, sublinear_tf=True, max_features=_MAX_RUNS
    )
    length, spaces = sum(map(len, texts)), sum(text.count(" ") for text in texts)
    if length > _LONG * len(texts) and _LETTERS_OF_A_WORD * spaces > length:
        return [words]
    runs = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), min_df=least + 1, sublinear_tf=True, max_features=_MAX_RUNS
    )
    return [words, runs]


@dataclass(frozen=True)
class TextFeatures:
    """The fitted vectorizers of each column of texts, and the factors of their terms.

    Attributes
    ----------
    vectorizers : dict of tuple of TfidfVectorizer
    factors : dict of TruncatedSVD
    """

    vectorizers: dict[str, tuple[TfidfVectorizer, ...]]
    factors: dict[str, TruncatedSVD]

    def terms(self, name: str, column: Any) -> sp.csr_array:
        """Weights of the terms of one column; a missing text has none."""
        texts = texts_of(column)
        parts = [vectorizer.transform(texts) for vectorizer in self.vectorizers[name]]
        return sp.csr_array(sp.hstack(parts, format="csr")) if len(parts) > 1 else sp.csr_array(parts[0])

    def all_terms(self, table: pa.Table) -> sp.csr_array:
        """Weights of the terms of all columns."""
        parts = [self.terms(name, table[name]) for name in self.vectorizers]
        return sp.csr_array(sp.hstack(parts, format="csr")) if len(parts) > 1 else parts[0]

    def factors_of(self, name: str, terms: Any) -> dict[str, np.ndarray]:
        """The factors of one column, named."""
        values = self.factors[name].transform(terms)
        return {f"factor {k + 1}": values[:, k] for k in range(values.shape[1])}

    def names(self) -> tuple[list[str], list[str]]:
        """The column of each term, and the terms."""
        sources, names = [], []
        for name, vectorizers in self.vectorizers.items():
            for vectorizer in vectorizers:
                found = vectorizer.get_feature_names_out()
                mark = "" if vectorizer.analyzer == "word" else "~"
                sources += [name] * len(found)
                names += [f"{name}: {mark}{term}" for term in found]
        return sources, names


def fit_texts(table: pa.Table, kinds: Mapping[str, str]) -> tuple[TextFeatures, dict[str, sp.csr_array]]:
    """Vectorizers and factors of the columns of texts, and the terms of the rows that they were fitted to."""
    vectorizers, factors, found = {}, {}, {}
    for name, kind in kinds.items():
        texts = texts_of(table[name])
        fitted, parts = [], []
        for vectorizer in _vectorizers(kind, texts):
            try:
                parts.append(sp.csr_array(vectorizer.fit_transform(texts)))
            except DataError:  # no term is in two rows
                continue
            fitted.append(vectorizer)
        if not fitted:
            raise DataError(f"X: column {name!r}: no word and no run of letters is in two rows")
        terms = sp.csr_array(sp.hstack(parts, format="csr"))
        size = min(_MAX_FACTORS, max(terms.shape[0] // _ROWS_PER_FACTOR, 1), min(terms.shape))
        vectorizers[name] = tuple(fitted)
        with config(on_nonconvergence="ignore"):  # leading directions to a few digits are all that is asked for
            factors[name] = TruncatedSVD(size, n_iter=4, random_state=0).fit(terms)
        found[name] = terms
    return TextFeatures(vectorizers, factors), found


def texts_of(column: Any) -> list[str]:
    """The texts of a column; a missing one is empty."""
    texts: list[str] = as_text(column).fill_null("").to_pylist()
    return texts


def places_of(column: Any) -> int:
    """The length of sequences that are all of one length, as those that were aligned; 0 where they are not."""
    lengths = pc.utf8_length(pc.utf8_trim_whitespace(as_text(column).drop_null()))
    low, high = pc.min(lengths).as_py(), pc.max(lengths).as_py()
    return int(low) if low == high and low is not None and low <= MAX_PLACES else 0


def letter_at(column: Any, place: int) -> Any:
    """The letters of sequences at a place, counted from 0, as upper case; null where there is none."""
    text = pc.utf8_upper(pc.utf8_trim_whitespace(as_text(column)))
    letter = pc.utf8_slice_codeunits(text, place, place + 1)
    return pc.if_else(pc.equal(letter, ""), pa.scalar(None, pa.string()), letter)
