"""Statistics and scores of classes: sums by brute force, missing entries, refusals at the boundary."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from epicycle._native import bayes


def rows(seed=0, n=37, p=11, K=3):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, p)), random.integers(0, K, n), random.random(n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [1, 3, 20])
def test_class_sums(dtype, K):
    X, code, w = rows(K=K)
    X = (X * (np.abs(X) > 0.7)).astype(dtype)
    expected = np.array([(w[code == k, None] * X[code == k].astype(float)).sum(axis=0) for k in range(K)])
    for table in (X, np.asfortranarray(X), sp.csr_array(X)):
        for threads in (1, 2):
            assert_allclose(bayes.class_sums(table, code, w, K, threads), expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(bayes.class_sums(X[:0], code[:0], None, K, 2), np.zeros((K, 11)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_class_moments_leave_missing_entries_out(order):
    X, code, w = rows(1)
    X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    X[code == 2, 0] = np.nan
    weight, mean, square = bayes.class_moments(np.asarray(X, order=order), code, w, 3)
    known = ~np.isnan(X)
    for k in range(3):
        share = w[:, None] * known * (code == k)[:, None]
        assert_allclose(weight[k], share.sum(axis=0), atol=1e-15)
        filled = np.where(known, X, 0.0)
        expected = np.divide((share * filled).sum(axis=0), weight[k], out=np.zeros(11), where=weight[k] > 0)
        assert_allclose(mean[k], expected, atol=1e-14)
        assert_allclose(square[k], (share * (filled - expected) ** 2).sum(axis=0), atol=1e-13)
    q, constant = np.full((3, 11), 0.5), np.full((3, 11), 2.0)
    scores = bayes.normal_scores(X, mean, q, constant)
    terms = np.where(known[:, None], (X[:, None] - mean) ** 2 * 0.5 + 2.0, 0.0)
    assert_allclose(scores, -0.5 * terms.sum(axis=2), atol=1e-12)


def test_what_does_not_fit_is_refused():
    X, code, w = rows(3)
    with pytest.raises(ValueError, match="below n_classes"):
        bayes.class_sums(X, code, w, 2, 1)
    with pytest.raises(ValueError, match="below n_classes"):
        bayes.class_moments(X, code - 1, w, 3)
    with pytest.raises(ValueError, match="weight"):
        bayes.class_moments(X, code, w[1:], 3)
    with pytest.raises(ValueError, match="normal_scores"):
        bayes.normal_scores(X, np.zeros((2, 11)), np.zeros((3, 11)), np.zeros((2, 11)))
    broken = sp.csr_array(X)
    broken.indices = broken.indices.copy()
    broken.indices[5] = 99
    for threads in (1, 2):
        with pytest.raises(ValueError, match="well-formed CSR"):
            bayes.class_sums(broken, code, w, 3, threads)


def test_gibbs_sampling_of_the_prior_alone():
    """Without rows the posterior is the prior; arguments that do not fit are refused."""
    none, precision, seed = np.empty((0, 2)), np.array([1.0, 4.0]), np.arange(4, dtype=np.uint64)
    draws, progress = np.empty((20_000, 2)), np.zeros(2, dtype=np.int64)
    arguments = [none, np.zeros(2), np.zeros(0, dtype=np.int64), precision, np.zeros(2), seed]
    rest = [5, draws, progress, np.zeros(1, dtype=np.int64)]
    bayes.logistic_gibbs(*arguments, *rest)
    assert progress.tolist() == [20_005, 20_000]
    assert_allclose(draws.std(axis=0), [1, 0.5], rtol=0.03)
    with pytest.raises(ValueError, match="logistic_gibbs"):
        bayes.logistic_gibbs(np.empty((0, 3)), *arguments[1:], *rest)
    with pytest.raises(ValueError, match="seed"):
        bayes.polya_gamma(np.zeros(3), seed[:2])


def test_polya_gamma_far_out_and_of_no_number():
    seed = np.arange(1, 5, dtype=np.uint64)
    found = bayes.polya_gamma(np.array([0.0, 1e5, -1e7, 1e300, np.inf, np.nan]), seed)
    assert_allclose(found[1:4], [0.5e-5, 0.5e-7, 0.5e-300], rtol=0.05)  # the mean, tanh(c / 2) / (2 c)
    assert_allclose(found[4:], 0)
