"""The kernels of kernel machines against plain NumPy: distances, sums over columns, words, perceptrons, bad calls."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from epicycle import _native

RNG = np.random.default_rng(0)
LETTERS = np.array([0, 1, 1, -1, 2, 0, 1, 2, 2, 0], dtype=np.int32)
RUNS = np.array([0, 0, 5, 9, 10], dtype=np.int64)  # the first string is empty


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_of_the_distance(dtype):
    A, B = (RNG.normal(size=(n, 3)).astype(dtype) for n in (5, 1030))
    B[7] = A[2] + dtype(1e-5)  # close rows, whose inner products would cancel
    s = cdist(A.astype(np.float64), B.astype(np.float64)) ** 2
    r = np.sqrt(s)
    expected = [
        s,
        np.exp(-s / 2),
        np.exp(-r),
        (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
        (1 + np.sqrt(5) * r + 5 * s / 3) * np.exp(-np.sqrt(5) * r),
        (1 + s / 3) ** -1.5,
    ]
    squares = [np.square(M.astype(np.float64)).sum(axis=1) for M in (A, B)]
    for kind, values in enumerate(expected):
        G = np.ascontiguousarray(A @ B.T)
        _native.kernel.radial_block(G, *squares, A, B, kind, 1.5)
        assert_allclose(G, values, rtol=1e-9 if dtype is np.float64 else 1e-3, atol=0 if dtype is np.float64 else 1e-5)


def test_sums_over_columns():
    A, B = RNG.uniform(size=(4, 3)), RNG.uniform(size=(1100, 3))
    D = A[:, None] - B
    total = A[:, None] + B
    expected = [
        np.square(D).sum(axis=2),
        np.abs(D).sum(axis=2),
        np.abs(D).max(axis=2),
        (np.abs(D) ** 1.5).sum(axis=2),
        np.minimum(A[:, None], B).sum(axis=2),
        (D**2 / total).sum(axis=2),
    ]
    for kind, values in enumerate(expected):
        assert_allclose(_native.kernel.columns_block(A, np.ascontiguousarray(B.T), kind, 1.5), values, rtol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_words(k):
    codes, counts, indptr = _native.kernel.word_counts(LETTERS, RUNS, k, 3)
    table = _native.kernel.word_table(LETTERS, RUNS, k, 3)
    expected = np.zeros((4, 3**k))
    for row, (start, stop) in enumerate(pairwise(RUNS)):
        for at in range(start, stop - k + 1):
            word = LETTERS[at : at + k]
            if (word >= 0).all():
                expected[row, int(word @ 3 ** np.arange(k - 1, -1, -1))] += 1
    assert_allclose(table, expected)
    rows = np.repeat(np.arange(4), np.diff(indptr))
    assert_allclose(expected[rows, codes], counts)
    assert counts.sum() == expected.sum()
    # words with gaps: over all places, numbered with the last letter in front
    for decay, slope in product((0.5, 1.0), (False, True)):
        found = _native.kernel.gapped_words(LETTERS, RUNS, k, 3, decay, slope)
        by_hand = np.zeros((4, 3**k))
        for row, (start, stop) in enumerate(pairwise(RUNS)):
            for places in product(range(start, stop), repeat=k):
                word = LETTERS[list(places)]
                if all(a < b for a, b in pairwise(places)) and (word >= 0).all():
                    length = places[-1] - places[0] + 1
                    by_hand[row, int(word @ 3 ** np.arange(k))] += (
                        length * decay ** (length - 1) if slope else decay**length
                    )
        assert_allclose(found, by_hand, rtol=1e-14)


def test_perceptron_passes():
    X = RNG.normal(size=(12, 2))
    K = X @ X.T + 1
    sign = np.where(X[:, 0] > 0, 1.0, -1.0)
    sign[3] = 0.0  # takes no part
    order, share = RNG.permutation(12).repeat(2).astype(np.int64), RNG.uniform(0.5, 1, 24)
    scores, counts = np.zeros(12), np.zeros(12)
    at, square = _native.kernel.perceptron_pass(K, order, share, 0, sign, scores, counts, 0.0)
    w = np.zeros(12)
    made = []
    for t, i in enumerate(order):
        if sign[i] != 0 and sign[i] * (K[i] @ (w * sign)) <= 0:
            w[i] += share[t]
            made.append(t)
    assert at.tolist() == made
    assert_allclose(counts, w)
    assert_allclose(scores, K @ (w * sign), atol=1e-12)
    assert square == pytest.approx((w * sign) @ K @ (w * sign))
    for _ in range(50):
        before = counts.sum() - square / 2
        square = _native.kernel.margin_pass(K, sign, scores, counts, square)
        assert counts.sum() - square / 2 >= before - 1e-9
    assert (counts >= 0).all()
    assert_allclose(scores, K @ (counts * sign), atol=1e-8)


F, N = np.zeros((2, 2)), np.zeros(2, np.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _native.kernel.word_counts(LETTERS, RUNS, 2, 2),  # a letter beyond the base
        lambda: _native.kernel.word_counts(LETTERS, RUNS[:-1], 2, 3),
        lambda: _native.kernel.word_counts(LETTERS, RUNS, 0, 3),
        lambda: _native.kernel.word_table(LETTERS, RUNS, 2, 2),
        lambda: _native.kernel.word_table(LETTERS, RUNS[::-1].copy(), 2, 3),
        lambda: _native.kernel.word_table(LETTERS, RUNS, 30, 4),  # more words than a table may have
        lambda: _native.kernel.gapped_words(LETTERS, RUNS, 0, 3, 0.5, False),
        lambda: _native.kernel.gapped_words(LETTERS, RUNS, 30, 4, 0.5, False),
        lambda: _native.kernel.gapped_words(LETTERS, RUNS, 2, 2, 0.5, False),
        lambda: _native.kernel.neighbour_words(LETTERS[:3], 2, 3, 1),
        lambda: _native.kernel.subsequence_block(LETTERS, RUNS[2:], LETTERS, RUNS, 2, 0.5, False),
        lambda: _native.kernel.sparse_product(
            np.ones(1), N[:1] + 9, np.array([0, 1]), np.ones(1), N[:1], np.array([0, 1]), F
        ),
        lambda: _native.kernel.radial_block(F.copy(), np.zeros(3), np.zeros(2), None, None, 1, 0.0),
        lambda: _native.kernel.radial_block(F.copy(), np.zeros(2), np.zeros(2), F, None, 1, 0.0),
        lambda: _native.kernel.radial_block(F.copy(), np.zeros(2), np.zeros(2), None, None, 6, 0.0),
        lambda: _native.kernel.columns_block(F, np.zeros((3, 2)), 0, 0.0),
        lambda: _native.kernel.columns_block(F, F, 6, 0.0),
        lambda: _native.kernel.perceptron_pass(F, N + 2, None, 0, np.ones(2), np.zeros(2), np.zeros(2), 0.0),
        lambda: _native.kernel.perceptron_pass(F, N, np.ones(3), 0, np.ones(2), np.zeros(2), np.zeros(2), 0.0),
        lambda: _native.kernel.margin_pass(F, np.ones(3), np.zeros(2), np.zeros(2), 0.0),
    ],
)
def test_bad_calls(call):
    with pytest.raises(ValueError, match=r"expected|too many"):
        call()
