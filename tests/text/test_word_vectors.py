"""Vectors of words: steps against their gradients, tables against what they stand for, and words of planted texts."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import Checkpoint, GloVe, Word2Vec
from epicycle._native import words as native
from epicycle.exceptions import ConvergenceError, DataError, DataTypeError, ParameterError
from epicycle.text import WordVectors, read_lines
from epicycle.text.words._corpus import read_corpus
from epicycle.text.words._word2vec import alias_table, huffman_ways, kept_share


def planted(n=600, seed=0):
    """Sentences about one of three topics each, with words that all of them share and some of other topics."""
    rng = np.random.default_rng(seed)
    topics = [[f"{name}{i}" for i in range(6)] for name in ("sea", "law", "tax")]
    words = np.array([*topics, [f"the{i}" for i in range(6)]])
    about = np.where(rng.random((n, 10)) < 0.7, rng.integers(3, size=n)[:, None], rng.integers(4, size=(n, 10)))
    return words[about, rng.integers(6, size=(n, 10))].tolist(), topics


def separation(model, topics):
    """Mean cosine within topics less that between them."""
    D = model._directions()
    places = [[model._places_[w] for w in topic] for topic in topics]
    within = np.mean([(D[p] @ D[p].T)[~np.eye(len(p), dtype=bool)].mean() for p in places])
    between = np.mean([(D[p] @ D[q].T).mean() for p in places for q in places if p is not q])
    return within - between


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_a_step_of_word2vec_is_its_gradient(seed, count):
    rng = np.random.default_rng(seed)
    v, U, yes = rng.normal(size=16), rng.normal(size=(count, 16)), rng.integers(2, size=count).astype(np.uint8)

    def loss(v, U):
        return np.logaddexp(0, -np.where(yes, 1, -1) * (U @ v)).sum()

    after, change = U.copy(), np.zeros(16)
    value = native.word2vec_step(v, after, yes, 1.0, change)
    assert value == pytest.approx(loss(v, U), rel=1e-12)
    h = 1e-6
    of_v = [(loss(v + h * e, U) - loss(v - h * e, U)) / (2 * h) for e in np.eye(16)]
    assert_allclose(change, -np.array(of_v), atol=1e-7)
    for j in range(count):
        of_u = [
            (loss(v, U + h * np.outer(np.eye(count)[j], e)) - loss(v, U - h * np.outer(np.eye(count)[j], e))) / (2 * h)
            for e in np.eye(16)
        ]
        assert_allclose(after[j] - U[j], -np.array(of_u), atol=1e-7)


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_an_epoch_of_glove_equals_a_loop(seed):
    rng = np.random.default_rng(seed)
    n, entries = int(rng.integers(2, 6)), int(rng.integers(1, 30))
    row, column = (rng.integers(n, size=entries).astype(np.int32) for _ in range(2))
    log_x, f, order = rng.normal(size=entries), rng.random(entries), rng.permutation(entries)
    W, C, biases = rng.normal(size=(n, 16)), rng.normal(size=(n, 16)), rng.normal(size=(4, n))
    biases[2:] = 1.0
    WW, CC = np.ones((n, 16)), np.ones((n, 16))
    given_arrays = [A.copy() for A in (W, C, WW, CC, biases)]
    found = native.glove_epoch(row, column, log_x, f, order, *given_arrays, 0.05, 1)
    total = 0.0
    for e in order:
        i, j = row[e], column[e]
        rest = W[i] @ C[j] + biases[0, i] + biases[1, j] - log_x[e]
        total += 0.5 * f[e] * rest**2
        gw, gc, gb = f[e] * rest * C[j], f[e] * rest * W[i], f[e] * rest
        WW[i] += gw**2
        CC[j] += gc**2
        W[i] -= 0.05 * gw / np.sqrt(WW[i])
        C[j] -= 0.05 * gc / np.sqrt(CC[j])
        biases[2, i] += gb**2
        biases[3, j] += gb**2
        biases[0, i] -= 0.05 * gb / np.sqrt(biases[2, i])
        biases[1, j] -= 0.05 * gb / np.sqrt(biases[3, j])
    assert found == pytest.approx(total, rel=1e-10)
    for ours, theirs in zip(given_arrays, (W, C, WW, CC, biases), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@given(st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=6), st.integers(1, 9))
def test_cooccurrences_equal_those_of_all_pairs(sentences, window):
    ids = np.array([i for s in sentences for i in s], dtype=np.int32)
    first = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    weight = np.arange(1.0, len(sentences) + 1)
    X = np.zeros((6, 6))
    for s, w in zip(sentences, weight, strict=True):
        for a in range(len(s)):
            for b in range(len(s)):
                if 0 < abs(a - b) <= window:
                    X[s[a], s[b]] += w / abs(a - b)
    i, j, x = native.cooccurrences(ids, first, weight, window)
    found = np.zeros((6, 6))
    found[i, j] = found[j, i] = x
    assert_allclose(found, X, rtol=1e-12)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40))
def test_tables_stand_for_the_counts(counts):
    counts = np.array(counts)
    keep, other = alias_table(counts.copy())
    drawn = keep.astype(float).copy()
    np.add.at(drawn, other, 1 - keep.astype(float))
    assert_allclose(drawn / len(counts), counts / counts.sum(), rtol=1e-5, atol=1e-7)
    first, node, right = huffman_ways(counts)
    lengths = np.diff(first)
    assert (0.5**lengths).sum() == pytest.approx(1.0)  # a complete code
    entropy = -(counts / counts.sum() * np.log2(counts / counts.sum())).sum()
    assert entropy - 1e-9 <= lengths @ counts / counts.sum() <= entropy + 1
    f = np.random.default_rng(0).normal(size=len(counts) - 1)
    branch = 1 / (1 + np.exp(-np.where(right, 1, -1) * f[node]))
    ways = [np.prod(branch[a:b]) for a, b in itertools.pairwise(first)]
    assert sum(ways) == pytest.approx(1.0)  # a probability for each word
    share = kept_share(counts, 0.01)
    assert ((share > 0) & (share <= 1)).all()


@pytest.mark.parametrize(
    "model",
    [
        Word2Vec(20, epochs=15, learning_rate=0.05, subsample=0, random_state=0),
        Word2Vec(20, architecture="cbow", epochs=15, learning_rate=0.05, subsample=0, random_state=0),
        Word2Vec(20, negative=0, hierarchical=True, epochs=15, learning_rate=0.05, subsample=0, random_state=0),
        Word2Vec(20, lock_free=True, n_jobs=2, epochs=15, learning_rate=0.05, subsample=0, random_state=0),
        GloVe(20, epochs=30, random_state=0),
    ],
    ids=["skip-gram", "cbow", "hierarchical", "lock-free", "glove"],
)
def test_words_of_a_topic_come_together(model):
    sentences, topics = planted()
    model.fit(sentences)
    assert separation(model, topics) > 0.4
    assert model.certificate_.value < 0.98
    nearest = [w for w, _ in model.most_similar("sea0", n=5)]
    assert all(w.startswith("sea") for w in nearest)


def test_the_same_bits_for_any_number_of_threads_and_after_a_checkpoint(tmp_path):
    sentences, _ = planted(200)
    for make in (lambda **more: Word2Vec(8, random_state=3, **more), lambda **more: GloVe(8, random_state=3, **more)):
        first = make(n_jobs=1, epochs=4).fit(sentences)
        for jobs in (2, 4):
            assert np.array_equal(make(n_jobs=jobs, epochs=4).fit(sentences).vectors_, first.vectors_)
        assert not np.array_equal(make(epochs=4).set_params(random_state=4).fit(sentences).vectors_, first.vectors_)

        file = tmp_path / "run.epi"
        cut = make(epochs=4).set_callbacks(Checkpoint(file, every=1), ep.TimeLimit(1e-9))
        with pytest.warns(ep.exceptions.ConvergenceWarning):
            cut.fit(sentences)
        assert 1 <= cut.n_iter_ < 4
        assert np.array_equal(Checkpoint.resume(file).fit(sentences).vectors_, first.vectors_)


def test_weights_count_documents():
    sentences, _ = planted(60)
    weight = np.random.default_rng(1).integers(0, 4, size=60)
    repeated = [s for s, w in zip(sentences, weight, strict=True) for _ in range(w)]
    weighted, plain = (
        GloVe(8, random_state=0).fit(sentences, sample_weight=weight),
        GloVe(8, random_state=0).fit(repeated),
    )
    assert_allclose(weighted.counts_, plain.counts_)
    assert_allclose(weighted.vectors_, plain.vectors_, atol=1e-5)
    corpora = [
        read_corpus(s, w, tokenizer=None, min_count=1, max_words=None)
        for s, w in ((sentences, weight), (repeated, None))
    ]
    assert np.array_equal(corpora[0].words, corpora[1].words)


def test_documents_of_all_kinds_are_read_alike(tmp_path):
    texts = ["The cat sat. The dog!", "the CAT and the dog"] * 4
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts))
    words = [["the", "cat", "sat", "the", "dog"], ["the", "cat", "and", "the", "dog"]] * 4
    expected = Word2Vec(4, random_state=0).fit(texts)
    assert list(expected.words_) == ["the", "cat", "dog"]
    for same in (words, read_lines(file), iter(texts), np.array(texts), (t for t in texts)):
        assert np.array_equal(Word2Vec(4, random_state=0).fit(same).vectors_, expected.vectors_)
    assert list(Word2Vec(4, min_count=1, max_words=2, random_state=0).fit(texts).words_) == ["the", "cat"]
    means = expected.transform(["cat unknown dog", ""])
    assert_allclose(means[0], expected.vectors_[[1, 2]].mean(axis=0))
    assert not means[1].any()


def test_vectors_go_through_files(tmp_path):
    sentences, _ = planted(100)
    model = Word2Vec(8, random_state=0).fit(sentences)
    model.most_similar("sea0")
    model.save(tmp_path / "model.epi")
    again = ep.load(tmp_path / "model.epi")
    assert np.array_equal(again.vectors_, model.vectors_)
    assert again.most_similar("sea0") == model.most_similar("sea0")
    for binary in (False, True):
        model.write_word2vec(tmp_path / "vectors", binary=binary)
        read = WordVectors.read_word2vec(tmp_path / "vectors", binary=binary)
        assert list(read.words_) == list(model.words_)
        assert np.array_equal(read.vectors_, model.vectors_)
        (tmp_path / "short").write_bytes((tmp_path / "vectors").read_bytes()[:200])
        with pytest.raises(DataError, match="short"):
            WordVectors.read_word2vec(tmp_path / "short", binary=binary)
    read.save(tmp_path / "words.epi")
    assert np.array_equal(ep.load(tmp_path / "words.epi").vectors_, model.vectors_)


def test_gensim_reads_and_gives_the_vectors(tmp_path):
    gensim = pytest.importorskip("gensim.models")
    model = Word2Vec(8, random_state=0).fit(planted(100)[0])
    model.write_word2vec(tmp_path / "vectors", binary=True)
    assert gensim.KeyedVectors.load_word2vec_format(str(tmp_path / "vectors"), binary=True)["sea0"] is not None
    assert np.array_equal(WordVectors(model.to_gensim()).vectors_, model.vectors_)


def test_analogies_and_pairs_are_scored():
    country = {"spain": (1.0, 0.0, 0.2), "france": (0.0, 1.0, -0.3), "italy": (-1.0, 0.5, 0.1)}
    capital = {"madrid": "spain", "paris": "france", "rome": "italy"}
    vectors = {k: [*v, 0.0] for k, v in country.items()} | {k: [*country[c], 1.0] for k, c in capital.items()}
    found = WordVectors({**vectors, "noise": [0.1, -0.9, 0.4, -0.5]})
    assert found.analogy("spain", "madrid", "france")[0][0] == "paris"
    questions = [(capital[a], a, capital[b], b) for a in capital for b in capital if a != b]
    accuracy, n = found.score_analogies([*questions, ("x", "y", "z", "w")])
    by_hand = np.mean([found.analogy(a, b, c)[0][0] == d for a, b, c, d in questions])
    assert (accuracy, n) == (by_hand, 6)
    pairs = [("spain", "madrid", 9.0), ("spain", "noise", 1.0), ("paris", "rome", 5.0), ("spain", "atlantis", 3.0)]
    cosines = [found.similarity(a, b) for a, b, _ in pairs[:3]]
    assert found.score_pairs(pairs) == (pytest.approx(scipy.stats.spearmanr(cosines, [9, 1, 5]).statistic), 3)
    with pytest.raises(DataError, match="atlantis"):
        found.similarity("spain", "atlantis")


@pytest.mark.parametrize(
    ("model", "X", "error", "words"),
    [
        (Word2Vec(), "a string", DataError, "into a list"),
        (Word2Vec(), 5, DataTypeError, "expected an iterable"),
        (Word2Vec(), ["ok", None], DataTypeError, "document 1 is None"),
        (GloVe(), [["a", 1]], DataTypeError, "document 0 holds 1"),
        (Word2Vec(), ["too few words"], DataError, "min_count=5"),
        (Word2Vec(), [], DataError, "expected at least 2"),
        (Word2Vec(negative=0), ["a b"] * 9, ParameterError, "negative=0"),
        (Word2Vec(0), ["a b"] * 9, ParameterError, "vector_size=0"),
        (Word2Vec(10**9), ["a b"] * 9, ParameterError, "vector_size"),
        (GloVe(min_count=1), [["a"], ["b"]], DataError, "no two words"),
    ],
)
def test_bad_input_is_named(model, X, error, words):
    with pytest.raises(error, match=words):
        model.fit(X)


def test_weights_that_are_none_and_steps_that_grow():
    with pytest.raises(DataError, match="sample_weight"):
        GloVe().fit(["a b"] * 5, sample_weight=[1, 2])
    with pytest.raises(DataError, match="sample_weight"):
        GloVe().fit(["a b"], sample_weight=[np.nan])
    with pytest.raises(ConvergenceError, match="learning_rate"), np.errstate(all="ignore"):
        Word2Vec(4, learning_rate=10, min_learning_rate=10, epochs=50, random_state=0).fit(
            ["a b c d"] * 50, sample_weight=np.full(50, 1e6)
        )
