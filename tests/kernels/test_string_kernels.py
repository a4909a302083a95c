"""String kernels against plain Python: words counted one by one, subsequences enumerated."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer

from epicycle.exceptions import ParameterError
from epicycle.kernel import Mismatch, Spectrum, Subsequence
from epicycle.kernels._texts import Gapped

texts = st.lists(st.text("abcäé😀", max_size=9), min_size=1, max_size=6)


def spectrum(s, t, k):
    a, b = (Counter(x[i : i + k] for i in range(len(x) - k + 1)) for x in (s, t))
    return sum(n * b[word] for word, n in a.items())


def mismatch(s, t, k, m, alphabet):
    def near(x, word):
        places = (x[i : i + k] for i in range(len(x) - k + 1))
        return sum(sum(a != b for a, b in zip(place, word, strict=True)) <= m for place in places)

    return sum(near(s, word) * near(t, word) for word in product(alphabet, repeat=k))


def subsequence(s, t, n, decay):
    total = 0.0
    for i in combinations(range(len(s)), n):
        for j in combinations(range(len(t)), n):
            if all(s[a] == t[b] for a, b in zip(i, j, strict=True)):
                total += decay ** (i[-1] - i[0] + 1 + j[-1] - j[0] + 1)
    return total


@settings(max_examples=60)
@given(texts, texts, st.integers(1, 4))
def test_spectrum(left, right, k):
    expected = [[spectrum(s, t, k) for t in right] for s in left]
    assert_allclose(Spectrum(k)(left, right), expected, rtol=1e-14)
    assert_allclose(Spectrum(k)(left), [[spectrum(s, t, k) for t in left] for s in left])
    assert_allclose(Spectrum(k).diagonal(left), [spectrum(s, s, k) for s in left])


@settings(max_examples=30)
@given(texts, texts, st.integers(10, 30))
def test_words_that_are_too_many_to_be_numbered(left, right, k):
    left, right = [s * 5 for s in left], [t * 4 for t in right]
    alphabet = "".join(chr(0x4E00 + i) for i in range(200))
    left.append(alphabet)  # 200 letters to the tenth power
    assert_allclose(Spectrum(k)(left, right), [[spectrum(s, t, k) for t in right] for s in left])
    assert_allclose(Spectrum(k)(right, left), [[spectrum(s, t, k) for t in left] for s in right])
    assert_allclose(Spectrum(k).diagonal(left), [spectrum(s, s, k) for s in left])


def test_spectrum_of_long_words_and_many_letters_goes_through_the_sparse_product():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 80)) for _ in range(70)]
    for k in (1, 3, 5):
        counts = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False).fit_transform(strings)
        assert_allclose(Spectrum(k)(strings), (counts @ counts.T).toarray())
        assert_allclose(Spectrum(k)(strings[:20], strings[20:]), (counts[:20] @ counts[20:].T).toarray())


@settings(max_examples=25)
@given(st.lists(st.text("abcd", max_size=6), min_size=1, max_size=4), st.integers(2, 3), st.integers(0, 2))
def test_mismatch(strings, k, m):
    m = min(m, k - 1)
    expected = [[mismatch(s, t, k, m, "abc") for t in strings] for s in strings]  # "d" is not in the alphabet
    assert_allclose(Mismatch(k, m, "abc")(strings), expected)
    assert_allclose(Mismatch(k, m, "abc")(strings, strings[:2]), np.array(expected)[:, :2])
    assert_allclose(Mismatch(k, m, "abc").diagonal(strings), np.diagonal(expected))


def test_no_mismatch_is_the_spectrum():
    strings = ["gattaca", "tagaca", "ccc", "gatgat"]
    assert_allclose(Mismatch(3, 0)(strings), Spectrum(3)(strings))


@settings(max_examples=40)
@given(st.lists(st.text("ab😀", max_size=7), min_size=1, max_size=3), st.integers(1, 4), st.floats(0.1, 1.0))
def test_subsequence(strings, length, decay):
    expected = [[subsequence(s, t, length, decay) for t in strings] for s in strings]
    assert_allclose(Subsequence(length, decay)(strings), expected, rtol=1e-12, atol=1e-300)


@settings(max_examples=25)
@given(st.lists(st.text("abc", max_size=12), min_size=1, max_size=4), st.integers(1, 3), st.floats(0.1, 1.0))
def test_subsequences_by_words_and_by_pairs(strings, length, decay):
    """A table of all words, and dynamic programming on two strings; new rows may have letters of their own."""
    strings = [s + "abcab" for s in strings]  # long enough for the table
    kernel = Subsequence(length, decay)
    A = kernel.prepare(np.array(strings, dtype=object))
    assert isinstance(A, Gapped)
    assert_allclose(kernel.block(A, A), kernel.block(A.texts, A.texts), rtol=1e-12)
    assert_allclose(list(kernel.gradients(A)), list(kernel.gradients(A.texts)), rtol=1e-11, atol=1e-300)
    others = ["xaybzc", "", "cc"]
    expected = [[subsequence(s, t, length, decay) for t in strings] for s in others]
    assert_allclose(kernel(others, strings), expected, rtol=1e-12, atol=1e-300)
    assert_allclose(kernel(strings, others), np.transpose(expected), rtol=1e-12, atol=1e-300)
    B = kernel.prepare(np.array(others, dtype=object), like=A)
    assert_allclose(kernel.prepared_diagonal(B), [subsequence(s, s, length, decay) for s in others], rtol=1e-12)


def test_every_road_to_the_spectrum_gives_the_same():
    """A dense table, a sparse matrix, and counts against rows with other letters."""
    rng = np.random.default_rng(1)
    for alphabet, length, k in (("ACGT", 300, 3), ("ACGT", 20, 5), ("ACDEFGHIKLMNPQRSTVWY", 40, 2)):
        strings = ["".join(rng.choice(list(alphabet), length)) for _ in range(12)]
        others = ["".join(rng.choice(list(alphabet[:3] + "xyz"), 30)) for _ in range(5)] + ["", "zz"]
        for left, right in ((strings, others), (others, strings)):
            assert_allclose(Spectrum(k)(left, right), [[spectrum(s, t, k) for t in right] for s in left])
            cosine = Spectrum(k).normalized()(left, right)
            lengths = [np.sqrt([spectrum(s, s, k) for s in rows]) for rows in (left, right)]
            expected = np.multiply.outer(*lengths)
            whole = Spectrum(k)(left, right)
            assert_allclose(cosine, np.divide(whole, expected, out=np.zeros_like(whole), where=expected > 0))


def test_long_counts_are_exact():
    """Beyond 2^24 float32 would round; squares of long runs are there at once."""
    runs = ["a" * 5000, "a" * 4999 + "b", "ab" * 2500]
    assert Spectrum(2)(runs)[0, 0] == 4999.0**2
    assert Spectrum(2)(runs)[0, 1] == 4999.0 * 4998
    assert Spectrum(2)(runs[2:])[0, 0] == 2500.0**2 + 2499.0**2


def test_subsequence_of_the_paper():
    """Lodhi et al. (2002), section 2: K(car, cat) = decay^4, and normalised 1 / (2 + decay^2)."""
    for decay in (0.3, 0.5, 1.0):
        kernel = Subsequence(2, decay)
        assert kernel(["car"], ["cat"])[0, 0] == pytest.approx(decay**4)
        assert kernel(["car"])[0, 0] == pytest.approx(2 * decay**4 + decay**6)
        assert kernel.normalized()(["car"], ["cat"])[0, 0] == pytest.approx(1 / (2 + decay**2))


def test_empty_and_short_strings_have_no_words():
    for kernel in (Spectrum(3), Mismatch(3, 1, "ab"), Subsequence(3)):
        assert not kernel(["", "a", "ab"]).any()
        assert not kernel.normalized()(["", "a", "ab"]).any()
        assert np.isfinite(kernel.normalized()(["", "abab"])).all()


def test_columns_of_frames_and_arrays():
    import pandas as pd
    import polars as pl

    strings = ["abab", "ba", "b"]
    for make in (np.array, pd.Series, pl.Series, tuple, lambda s: np.array(s, dtype=object)[:, None]):
        assert_allclose(Spectrum(2)(make(strings)), Spectrum(2)(strings))


@pytest.mark.parametrize("texts", [["aaa", "aa"], ["abcab", "bcad"]])
@pytest.mark.parametrize("k", [63, 10**9, 2**62])
def test_words_longer_than_all_texts_are_in_none(texts, k):
    # Powers of the number of letters overflowed, and words of one letter were counted to.
    X = np.array(texts, dtype=object)
    for kernel in (Spectrum(k), Subsequence(k)):
        assert_allclose(kernel(X, X), 0.0)
    with pytest.raises(ParameterError, match="more words than can be numbered"):
        Mismatch(k)(X, X)


def test_words_of_many_letters():
    X = np.array(["".join(map(chr, range(0x4E00, 0x9E00)))] * 2, dtype=object)  # 20,480 letters to the power of 80
    assert_allclose(Spectrum(80)(X[:1], X[1:]), Spectrum(80)(X[:1]))
