"""Vectorisers against scikit-learn, on random Unicode and on the same documents from many sources."""

import gzip
import re
import sys
import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction import text as peer

import epicycle as ep
from epicycle import _native
from epicycle.exceptions import (
    ConvergenceWarning,
    DataError,
    DataFileError,
    DataTypeError,
    NotFittedError,
    ParameterError,
)
from epicycle.text import read_lines
from epicycle.text._characters import character_table

#: Letters that lower case treats in ways of their own, marks, digits of other scripts, spaces, half surrogates.
ODD = "İıΣσςʼ'ΑßẞǅȺKÅΏ·़٣²Ⅷ_ªｗ中文한글🙂𐐀𝔘\u00a0\u2003\x1c\x85\u200b­\ud800\t\n -.,aA0zZ"
#: One letter of every script is too many to draw from evenly: words and spaces are what matters.
texts = st.lists(
    st.text(alphabet=st.one_of(st.sampled_from(ODD), st.characters()), max_size=40), min_size=1, max_size=6
)
options = st.fixed_dictionaries(
    {
        "analyzer": st.sampled_from(["word", "char", "char_wb"]),
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 3), (1, 7)]),
        "lowercase": st.booleans(),
        "strip_accents": st.sampled_from([None, "unicode", "ascii"]),
        "token_pattern": st.sampled_from([r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\w+", r"(?u)[^\W_]+"]),
        "binary": st.booleans(),
    }
)


def same_counts(ours, theirs, documents):
    """Both refuse, or both have the same terms and counts."""
    try:
        expected = theirs.fit_transform(documents)
    except ValueError:
        with pytest.raises(ValueError, match=r"empty vocabulary|no terms remain"):
            ours.fit_transform(documents)
        return
    found = ours.fit_transform(documents)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert abs(found - expected).max() == 0
    again = ours.transform(documents)  # the other way of counting: known terms
    assert abs(again - expected).max() == 0
    assert found.has_canonical_format
    assert np.array_equal(ours.document_frequency_, np.bincount(expected.indices, minlength=expected.shape[1]))


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
@settings(max_examples=60)
@given(texts, options)
@example(["ΑΣ", "ΑΣΑ ΑΣ' Σ 'Σ ΑʼΣ", "İSTANBUL İ"], {"ngram_range": (1, 2)})
def test_random_unicode_as_in_scikit_learn(documents, arguments):
    same_counts(ep.CountVectorizer(**arguments), peer.CountVectorizer(**arguments), documents)


def test_every_character_as_python_sees_it():
    """Each code point between letters: as a word, in lower case, and as white space."""
    assigned = [*range(0x20000), *range(0xE0000, 0xE0200), *range(0x20000, sys.maxunicode, 997)]
    document = " ".join(f"A{chr(c)}bc" for c in assigned)
    counts = ep.CountVectorizer().fit([document])
    assert set(counts.vocabulary_) == set(re.findall(r"\b\w\w+\b", document.lower()))
    spaced = "".join(f"a{chr(c)}" for c in assigned)  # n-grams longer than any word are the words
    whole = ep.CountVectorizer(analyzer="char_wb", ngram_range=(10**6, 10**6), lowercase=False).fit([spaced])
    assert set(whole.vocabulary_) == {f" {word} " for word in spaced.split()}


def test_a_sigma_after_and_before_every_character():
    """Final or not, between any two characters; ignorable ones are passed over."""
    table, knows_lower = character_table(True)
    assert knows_lower
    assert isinstance(table, _native.text.Characters)
    some = [c for c in map(chr, range(0x3000)) if c.isalpha() or unicodedata.combining(c) or c in "'.:·­\u2019"]
    document = " ".join([f"{c}Σ" for c in some] + [f"ΑΣ{c}" for c in some] + [f"Α{c}Σ{c}Α" for c in some])
    counts = ep.CountVectorizer(token_pattern=r"\w+").fit([document])
    assert set(counts.vocabulary_) == set(re.findall(r"\w+", document.lower()))


CORPUS = [
    "The quick brown fox jumps over the lazy dog.",
    "the Dog barks; the fox — quick as ever — runs. café CAFÉ cafe",
    "",
    "Zoë's naïve 42 straße, STRASSE and 3.14!",
    "over and over and over again: the dog, the fox",
]


@pytest.mark.parametrize(
    "arguments",
    [
        {"stop_words": "english"},
        {"stop_words": ["the", "and"], "ngram_range": (1, 3)},
        {"max_df": 0.5, "min_df": 2},
        {"max_features": 4},
        {"max_features": 3, "ngram_range": (1, 2), "binary": True},
        {"vocabulary": ["fox", "dog", "cafe"], "strip_accents": "unicode"},
        {"vocabulary": {"fox": 1, "over": 0}},
        {"preprocessor": lambda text: text.upper()},
        {"tokenizer": str.split, "token_pattern": None},
        {"analyzer": lambda text: [(word, len(word)) for word in text.split()]},
        {"strip_accents": lambda text: text.replace("é", "e"), "lowercase": False},
        {"token_pattern": r"(\w)\w+"},
        {"dtype": np.float32, "analyzer": "char_wb", "ngram_range": (2, 5)},
        {"ngram_range": (0, 2)},
    ],
)
def test_options_as_in_scikit_learn(arguments):
    ours, theirs = ep.CountVectorizer(**arguments), peer.CountVectorizer(**arguments)
    expected = theirs.fit_transform(CORPUS)
    found = ours.fit_transform(CORPUS)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert found.dtype == expected.dtype
    assert abs(found - expected).max() == 0
    assert abs(ours.transform(CORPUS[::-1]) - theirs.transform(CORPUS[::-1])).max() == 0
    names = (ours.get_feature_names_out(), theirs.get_feature_names_out())
    assert list(map(tuple, names[0])) == list(map(tuple, names[1]))
    if all(isinstance(name, str) for name in names[0]):
        rows = zip(ours.inverse_transform(found), theirs.inverse_transform(expected), strict=True)
        assert all(sorted(a) == sorted(b) for a, b in rows)


@pytest.mark.parametrize("arguments", [{}, {"sublinear_tf": True, "norm": "l1"}, {"use_idf": False, "norm": None}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_as_in_scikit_learn(arguments, dtype):
    ours = ep.TfidfVectorizer(dtype=dtype, **arguments).fit(CORPUS)
    theirs = peer.TfidfVectorizer(dtype=dtype, **arguments).fit(CORPUS)
    expected = theirs.transform(CORPUS)
    rounding = 1e-12 if dtype == np.float64 else 1e-6
    for found in (ours.transform(CORPUS), ep.TfidfVectorizer(dtype=dtype, **arguments).fit_transform(CORPUS)):
        assert found.dtype == dtype
        assert_allclose(found.toarray(), expected.toarray(), rtol=rounding)
    counts = peer.CountVectorizer(dtype=dtype).fit_transform(CORPUS)
    weights = ep.TfidfTransformer(**arguments).fit(counts)
    assert_allclose(weights.transform(counts).toarray(), expected.toarray(), rtol=rounding)
    assert_allclose(weights.transform(counts.toarray()).toarray(), expected.toarray(), rtol=rounding)


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
@settings(max_examples=30)
@given(texts, options, st.sampled_from([1, 7, 2**20, 2**31 - 1]), st.booleans())
def test_hashes_as_in_scikit_learn(documents, arguments, n_features, alternate_sign):
    documents = [text.replace("\ud800", "") for text in documents]  # which scikit-learn cannot encode
    documents = [text.encode("utf-8", "ignore").decode() for text in documents]
    arguments = {**arguments, "n_features": n_features, "alternate_sign": alternate_sign}
    expected = sp.csr_array(peer.HashingVectorizer(**arguments).transform(documents))
    found = sp.csr_array(ep.HashingVectorizer(**arguments).transform(documents))
    assert np.array_equal(found.indptr, expected.indptr)
    assert np.array_equal(found.indices, expected.indices)
    assert_allclose(found.data, expected.data, rtol=1e-12)


def test_a_weight_counts_documents():
    counts = peer.CountVectorizer().fit_transform(CORPUS)
    twice = ep.TfidfTransformer().fit(counts[[0, 1, 1, 2, 3, 3, 3, 4]]).idf_
    weighed = ep.TfidfTransformer().fit(counts, sample_weight=[1, 2, 1, 3, 1]).idf_
    assert_allclose(weighed, twice, rtol=1e-14)


def test_weights_without_smoothing_are_finite_for_unknown_terms():
    heavy = ep.TfidfTransformer().fit(np.ones((3, 2), dtype=np.float32), sample_weight=[1e100, 1e100, 0.0])
    assert_allclose(heavy.idf_, 1.0)  # float32 does not hold the number of documents
    idf = ep.TfidfTransformer(smooth_idf=False).fit([[1, 0], [2, 0]]).idf_
    assert_allclose(idf, [1.0, 1.0 + np.log(2.0)])
    light = ep.TfidfTransformer(smooth_idf=False).fit([[1], [0]], sample_weight=[1e-300, 1e100])
    assert_allclose(light.idf_, 1.0 + 400.0 * np.log(10.0))
    large = ep.TfidfTransformer(use_idf=False).fit_transform([[1e200, 1e200], [1e-200, 0.0]]).toarray()
    assert_allclose(large, [[np.sqrt(0.5), np.sqrt(0.5)], [1.0, 0.0]])


# ---------------------------------------------------------------- sources


def sources(folder):
    path = folder / "documents.txt"
    path.write_text("\n".join(CORPUS) + "\n", encoding="utf-8")
    with gzip.open(folder / "documents.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(CORPUS) + "\n")
    frame = pd.DataFrame({"text": CORPUS, "label": range(5)})
    frame.to_parquet(folder / "documents.parquet")
    return {
        "list": CORPUS,
        "tuple": tuple(CORPUS),
        "iterator": iter(CORPUS),
        "array": np.array(CORPUS),
        "objects": np.array(CORPUS, dtype=object),
        "bytes": [text.encode() for text in CORPUS],
        "pandas": frame["text"],
        "frame": frame[["text"]],
        "polars": pl.Series("text", CORPUS),
        "arrow": pa.chunked_array([CORPUS[:2], CORPUS[2:]]),
        "lines": read_lines(path),
        "packed": read_lines([folder / "documents.gz"]),
        "scan": ep.scan(folder / "documents.parquet", columns=["text"]),
    }


def test_the_same_from_every_source(tmp_path, monkeypatch):
    expected = peer.TfidfVectorizer().fit_transform(CORPUS).toarray()
    monkeypatch.setattr("epicycle.data._documents.BATCH", 2)
    for name, documents in sources(tmp_path).items():
        found = ep.TfidfVectorizer().fit_transform(documents).toarray()
        assert_allclose(found, expected, rtol=1e-12, err_msg=name)
    lines = read_lines(tmp_path / "documents.txt")
    model = ep.TfidfVectorizer().fit(lines)
    parts = list(model.transform_batches(lines))
    assert [part.shape[0] for part in parts] == [2, 2, 1]
    assert_allclose(sp.vstack(parts).toarray(), expected, rtol=1e-12)
    hashed = sp.vstack(list(ep.HashingVectorizer(n_features=64).transform_batches(lines)))
    assert_allclose(hashed.toarray(), peer.HashingVectorizer(n_features=64).transform(CORPUS).toarray(), rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_the_same_bits_on_any_number_of_threads(n_jobs):
    words = np.random.default_rng(0).zipf(1.3, size=(3000, 20))
    documents = [" ".join(f"w{w % 5000}" for w in row) for row in words]
    model = ep.TfidfVectorizer(ngram_range=(1, 2), max_features=1000, n_jobs=n_jobs)
    X = model.fit_transform(documents)
    expected = peer.TfidfVectorizer(ngram_range=(1, 2), max_features=1000).fit(documents)
    assert model.vocabulary_ == expected.vocabulary_
    one = ep.TfidfVectorizer(ngram_range=(1, 2), max_features=1000, n_jobs=1).fit_transform(documents)
    assert np.array_equal(X.data, one.data)
    assert np.array_equal(X.indices, one.indices)


# ---------------------------------------------------------------- bounded memory


def zipf_documents():
    words = np.random.default_rng(1).zipf(1.2, size=(4000, 12)) % 30_000
    return [" ".join(f"w{w}" for w in row) for row in words]


def test_a_bounded_vocabulary_with_frequency_limits_is_exact(monkeypatch):
    monkeypatch.setattr("epicycle.data._documents.BATCH", 200)
    documents = zipf_documents()
    expected = peer.CountVectorizer(min_df=40).fit(documents)
    bounded = ep.CountVectorizer(min_df=40, max_terms=2500)
    X = bounded.fit_transform(documents)
    assert len(ep.CountVectorizer().fit(documents).vocabulary_) > 2 * 2500
    assert bounded.vocabulary_ == expected.vocabulary_
    assert abs(X - expected.transform(documents)).max() == 0
    assert 0 < bounded.certificate_.value < 40
    assert bounded.certificate_.holds
    most = ep.CountVectorizer(max_features=50, max_terms=2500).fit(documents)
    assert most.vocabulary_ == peer.CountVectorizer(max_features=50).fit(documents).vocabulary_
    assert most.certificate_.holds


def test_what_a_bounded_vocabulary_misses_is_said(monkeypatch):
    monkeypatch.setattr("epicycle.data._documents.BATCH", 200)
    documents = zipf_documents()
    exact = ep.CountVectorizer().fit(documents)
    frequency = dict(zip(exact.get_feature_names_out(), exact.document_frequency_, strict=True))
    with pytest.warns(ConvergenceWarning):
        small = ep.CountVectorizer(max_terms=1000).fit(documents)
    missing = [n for term, n in frequency.items() if term not in small.vocabulary_]
    assert max(missing) <= small.certificate_.value
    assert not small.certificate_.holds
    with pytest.warns(ConvergenceWarning):  # read once: counts may be too low, by no more than the certificate says
        once = ep.CountVectorizer(max_terms=2500, min_df=40).fit(iter(documents))
    for term, found in zip(once.get_feature_names_out(), once.document_frequency_, strict=True):
        assert found <= frequency[term] <= found + once.certificate_.value
    with pytest.raises(DataError, match="max_terms"):
        ep.CountVectorizer(max_terms=2500).fit_transform(iter(documents))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "documents", "error", "words"),
    [
        ({}, "one text", DataError, "string object received"),
        ({}, [1, 2], DataTypeError, "number 0 is int"),
        ({}, ["a b", None], DataTypeError, "number 1 is NoneType"),
        ({}, 3, DataTypeError, "documents: int"),
        ({}, np.array([["ab", "cd"]]), DataError, "one dimension"),
        ({}, pd.DataFrame({"a": ["ab"], "b": ["cd"]}), DataError, "2 columns"),
        ({}, [], DataError, "empty vocabulary"),
        ({"ngram_range": (2, 1)}, ["ab"], ParameterError, "ngram_range"),
        ({"ngram_range": (1, 1.5)}, ["ab"], ParameterError, "ngram_range"),
        ({"token_pattern": "("}, ["ab"], ParameterError, "token_pattern"),
        ({"max_df": 1, "min_df": 2}, ["ab", "ab"], ParameterError, "max_df"),
        ({"vocabulary": {"a": 0, "b": 2}}, ["ab"], ParameterError, "index 1"),
        ({"stop_words": "klingon"}, ["ab"], ParameterError, "stop_words"),
        ({"token_pattern": None}, ["ab"], ParameterError, "token_pattern=None"),
        ({"encoding": "utf-9"}, ["ab"], ParameterError, "encoding='utf-9'"),
        ({"input": "filename"}, [1], DataTypeError, "names of files"),  # which would be the output of the program
        ({"input": "filename"}, ["no such file"], DataFileError, "no such file"),
        ({"input": "file"}, [1.5], DataTypeError, "attribute 'read'"),
        ({"token_pattern": r"[a-z]+"}, [["ab"]], DataTypeError, "list"),
    ],
)
def test_refusals_name_what_came(arguments, documents, error, words):
    with pytest.raises(error, match=words):
        ep.CountVectorizer(**arguments).fit(documents)


def test_vast_ngrams_end_at_the_document():
    counts = ep.CountVectorizer(ngram_range=(1, 10**9)).fit(["a few words here"])
    assert len(counts.vocabulary_) == 6
    assert len(ep.CountVectorizer(analyzer="char_wb", ngram_range=(1, 10**9)).fit(["abc de"]).vocabulary_) == 22


def test_steps_of_a_subclass_or_an_object_are_taken():
    class Stems(ep.CountVectorizer):
        def build_tokenizer(self):
            return lambda text: [word.rstrip("s") for word in text.split()]

    assert sorted(Stems().fit(["cats cat dogs"]).vocabulary_) == ["cat", "dog"]
    one = ep.CountVectorizer()
    one.build_preprocessor = lambda: str.upper
    assert sorted(one.fit(["cats cat dogs"]).vocabulary_) == ["CAT", "CATS", "DOGS"]


def test_not_fitted():
    for model in (ep.CountVectorizer(), ep.TfidfVectorizer(), ep.TfidfVectorizer(vocabulary=["ab"])):
        with pytest.raises(NotFittedError):
            model.transform(["ab"])
    with pytest.raises(DataError, match="sublinear_tf"):
        ep.TfidfTransformer(sublinear_tf=True).fit_transform([[-1.0, 2.0]])
