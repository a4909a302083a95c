"""Latent semantic indexing: synonyms, the decomposition against LAPACK, search, and the same answer from everywhere."""

import warnings

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction import text as peer

import epicycle as ep
from epicycle.exceptions import DataError, EpicycleWarning, NotFittedError, ParameterError

CONTEXT = ["engine", "wheel", "road", "fuel", "driver", "brake", "speed", "tyre", "garage", "lane"]
KITCHEN = ["flour", "sugar", "oven", "butter", "spoon", "bowl", "cream", "yeast", "dough", "salt"]


def planted():
    """Documents about cars, half of which say "car" and half "automobile", never both; and about cakes."""
    rng = np.random.default_rng(0)
    documents = []
    for i in range(120):
        topic = CONTEXT if i % 2 else KITCHEN
        words = list(rng.choice(topic, 5, replace=False))
        documents.append(" ".join([*words, ("car" if i % 4 == 1 else "automobile") if i % 2 else "cake"]))
    return documents


@pytest.fixture(scope="module")
def corpus():
    return planted()


@pytest.fixture(scope="module")
def index(corpus):
    return ep.LatentSemanticIndexing(2, random_state=0).fit(corpus)


def test_synonyms_become_similar(corpus, index):
    X = peer.TfidfVectorizer().fit_transform(corpus).toarray()
    names = index.terms()
    car, automobile, cake = (X[:, names.index(term)] for term in ("car", "automobile", "cake"))
    assert car @ automobile == 0  # they are never in one document
    near = dict(index.similar_terms("car", len(names)))
    assert near["automobile"] > 0.99
    assert near["cake"] < 0.01
    assert car @ cake == 0
    found = index.search("car", 60)
    about_cars = np.arange(1, 120, 2)
    assert set(found.documents) == set(about_cars)  # half of them without the word
    assert np.all(np.diff(found.similarities) <= 0)


def test_against_lapack(corpus):
    X = peer.TfidfVectorizer().fit_transform(corpus).toarray()
    U, s, V = np.linalg.svd(X, full_matrices=False)
    model = ep.LatentSemanticIndexing(4, random_state=0, tol=1e-12).fit(corpus)
    assert_allclose(model.singular_values_, s[:4], rtol=1e-10)
    assert_allclose(np.abs(np.sum(model.components_ * V[:4], axis=1)), 1.0, atol=1e-8)
    assert_allclose(np.abs(model.transform(corpus)), np.abs(U[:, :4] * s[:4]), atol=1e-7)
    assert_allclose(model.reconstruction_error(corpus), np.square(U[:, 4:] * s[4:]).sum(axis=1), atol=1e-8)
    assert model.certificate_.holds
    Z = model.document_vectors_
    query = model.transform(["car engine"])[0]
    cosines = Z @ query / np.linalg.norm(Z, axis=1) / np.linalg.norm(query)
    found = model.search("car engine", 7)
    assert_allclose(found.similarities, np.sort(cosines)[::-1][:7], rtol=1e-10)
    assert_allclose(cosines[found.documents], found.similarities, rtol=1e-10)


def test_logarithms_of_counts():
    counts = np.random.default_rng(3).poisson(1.5, size=(40, 9)).astype(float)
    weights = peer.TfidfTransformer(sublinear_tf=True).fit_transform(counts).toarray()
    found = ep.LatentSemanticIndexing(3, weights="log-tfidf", random_state=0).fit(counts)
    assert_allclose(found.singular_values_, np.linalg.svd(weights)[1][:3], rtol=1e-8)
    plain = ep.LatentSemanticIndexing(3, weights=None, random_state=0).fit(counts)
    assert_allclose(plain.singular_values_, np.linalg.svd(counts)[1][:3], rtol=1e-8)


def test_the_same_from_memory_files_dask_and_repeated_rows(tmp_path):
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 1.0, size=(8, 12))[rng.integers(0, 8, 300)]).astype(float)
    model = ep.LatentSemanticIndexing(3, random_state=0, tol=1e-10)
    one = model.fit(counts).document_vectors_
    np.save(tmp_path / "counts.npy", counts)
    for X in (sp.csr_array(counts), ep.scan(tmp_path / "counts.npy"), da.from_array(counts, chunks=(70, 12))):
        other = ep.LatentSemanticIndexing(3, random_state=0, tol=1e-10).fit(X)
        assert_allclose(other.document_vectors_, one, atol=1e-8)
        assert_allclose(other.idf_, model.idf_, rtol=1e-14)
    times = rng.integers(0, 3, 300)
    weighed = ep.LatentSemanticIndexing(3, random_state=0, tol=1e-10).fit(counts, sample_weight=times)
    repeated = ep.LatentSemanticIndexing(3, random_state=0, tol=1e-10).fit(np.repeat(counts, times, axis=0))
    assert_allclose(weighed.singular_values_, repeated.singular_values_, rtol=1e-10)
    assert_allclose(weighed.transform(counts), repeated.transform(counts), atol=1e-7)
    assert ep.LatentSemanticIndexing(3).fit(counts.astype(np.float32)).transform(counts[:2]).shape == (2, 3)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_same_bits_on_any_number_of_threads(n_jobs):
    counts = np.random.default_rng(2).poisson(0.3, size=(6000, 80)).astype(float)
    one, many = (ep.LatentSemanticIndexing(4, random_state=0, n_jobs=n).fit(counts) for n in (1, n_jobs))
    assert np.array_equal(one.components_, many.components_)
    assert np.array_equal(one.document_vectors_, many.document_vectors_)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(1e-3, 1e3), st.integers(1, 30))
def test_order_and_scale_of_documents_do_not_matter(seed, scale, k):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.8, size=(14, 9)).astype(float)
    order = rng.permutation(14)
    one = ep.LatentSemanticIndexing(k, random_state=0, tol=1e-10).fit(counts)
    other = ep.LatentSemanticIndexing(k, random_state=1, tol=1e-10).fit(scale * counts[order])
    assert one.components_.shape == (min(k, np.linalg.matrix_rank(counts)), 9)
    assert_allclose(other.singular_values_, one.singular_values_, rtol=1e-8)
    gram = one.document_vectors_ @ one.document_vectors_.T
    if k >= 9:  # all dimensions: inner products of documents are those of their weights
        weights = peer.TfidfTransformer().fit_transform(counts).toarray()
        assert_allclose(gram, weights @ weights.T, atol=1e-8)
        assert_allclose(other.document_vectors_ @ other.document_vectors_.T, gram[np.ix_(order, order)], atol=1e-8)


def test_queries_are_answered_in_parts(corpus, index, monkeypatch):
    whole = index.search(corpus, 7)
    monkeypatch.setattr("epicycle.text._latent_semantic_indexing._COSINES", 250)
    assert np.array_equal(index.search(corpus, 7).documents, whole.documents)


def test_folded_in_saved_and_refused(corpus, index, tmp_path):
    more = ep.LatentSemanticIndexing(2, random_state=0).fit(corpus).fold_in(["car road brake", "unknown words alone"])
    assert more.document_vectors_.shape == (122, 2)
    assert_allclose(more.document_vectors_[120:], index.transform(["car road brake", "unknown words alone"]))
    assert np.array_equal(more.document_vectors_[121], [0, 0])
    assert 121 not in more.search("car", 60).documents
    assert more.search(["car", "cake"], 10**9).documents.shape == (2, 122)
    more.save(tmp_path / "index.epi")
    loaded = ep.load(tmp_path / "index.epi")
    assert np.array_equal(loaded.search("dough", 5).documents, more.search("dough", 5).documents)
    assert loaded.similar_terms("car", 3) == more.similar_terms("car", 3)
    with pytest.raises(NotFittedError):
        ep.LatentSemanticIndexing().search("car")
    with pytest.raises(DataError, match="'bicycle': not among"):
        index.similar_terms("bicycle")
    with pytest.raises(ParameterError, match="n_documents=0"):
        index.search("car", 0)
    with pytest.raises(ParameterError, match="weights='tfidf'"):
        ep.LatentSemanticIndexing(vectorizer=ep.TfidfVectorizer()).fit(corpus)
    with pytest.raises(DataError, match="fit was to a table"):
        ep.LatentSemanticIndexing(1).fit([[1.0, 2.0], [2.0, 0.0]]).search("car")
    given = ep.LatentSemanticIndexing(2, vectorizer=ep.TfidfVectorizer(), weights=None, random_state=0).fit(corpus)
    assert_allclose(given.singular_values_, index.singular_values_, rtol=1e-10)


def test_unknown_words_of_a_query_are_named(corpus, index):
    with pytest.raises(
        DataError, match=r"query='nothing known': the fit knows none of 'nothing', 'known'; expected some"
    ):
        index.search("nothing known")
    with pytest.raises(DataError, match=r"the fit finds no terms in it"):
        index.search("?")
    with pytest.warns(EpicycleWarning, match=r"passed over 'speedy', not among the 23 terms"):
        found = index.search("speedy car, SPEEDY!", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(found.similarities, index.search("car", 5).similarities, rtol=1e-12)
        index.search(corpus[:3])
    with pytest.warns(EpicycleWarning, match=r"2 of 3 texts .* \(positions 0, 2\)"):
        several = index.search(["nothing", "car", ""], 4)
    assert several.similarities[[0, 2]].max() == 0
    assert_allclose(several.similarities[1], index.search("car", 4).similarities)
    pairs = ep.LatentSemanticIndexing(2, vectorizer=ep.CountVectorizer(ngram_range=(1, 2)), random_state=0).fit(corpus)
    with pytest.warns(EpicycleWarning) as caught:
        pairs.search("salt engine truck")  # unknown pairs of known words are no news
    assert "passed over 'truck', not" in str(caught[0].message)
    letters = ep.CountVectorizer(analyzer="char_wb", ngram_range=(3, 3))
    shapes = ep.LatentSemanticIndexing(5, vectorizer=letters, random_state=0).fit(corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shapes.search("cars")  # letters of unknown words are known
    with pytest.raises(DataError, match="finds no terms"):
        shapes.search("xyz")
    listed = ep.LatentSemanticIndexing(1, vectorizer=ep.HashingVectorizer(n_features=64), weights=None).fit(corpus)
    listed.search("whatever")  # hashes have no list of terms
