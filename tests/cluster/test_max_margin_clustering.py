"""MaxMarginClustering: shapes it has to find, all clusterings of few rows, and what it proves."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import epicycle as ep
from epicycle import MaxMarginClustering
from epicycle.exceptions import DataError, ParameterError


def simplex(k):
    """Unit vectors with inner products -1 / (k - 1), by another road: an eigendecomposition of their Gram matrix."""
    values, vectors = np.linalg.eigh((k * np.eye(k) - 1) / (k - 1))
    return vectors[:, 1:] * np.sqrt(values[1:])


def cost(K, T, C, weight):
    """min over c and b of  c'Kc / 2 + C sum_i v_i |t_i - (Kc)_i - b|^2, from its normal equations."""
    n = len(K)
    total = 0.0
    for t in T.T:
        S = np.zeros((n + 1, n + 1))
        S[:n, :n] = K + np.diag(1 / (2 * C * weight))
        S[:n, n] = S[n, :n] = 1
        solved = np.linalg.lstsq(S, np.append(t, 0), rcond=None)[0]
        c, b = solved[:n], solved[n]
        total += c @ K @ c / 2 + C * weight @ (t - K @ c - b) ** 2
    return total


def balanced_labels(n, k, weight, share):
    """All clusterings in which every cluster has the share of the mean weight."""
    for labels in itertools.product(range(k), repeat=n - 1):
        labels = np.array((0, *labels))
        if np.bincount(labels, weights=weight, minlength=k).min() >= share * weight.sum() / k - 1e-9:
            yield labels


# ------------------------------------------------------------------------------------------------ shapes


@pytest.mark.parametrize("seed", range(2))
def test_two_half_moons(seed):
    X, y = make_moons(160, noise=0.05, random_state=seed + 10)
    model = MaxMarginClustering(kernel="rbf", gamma=10.0, C=10.0, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    linear = MaxMarginClustering(random_state=0).fit(X)  # no straight line does
    assert adjusted_rand_score(y, linear.labels_) < 0.5
    new, side = make_moons(400, noise=0.05, random_state=seed + 20)
    assert adjusted_rand_score(side, model.predict(new)) > 0.95


def test_gaussians_and_rings():
    for k in (2, 3, 4):
        X, y = make_blobs(40 * k, centers=k, n_features=4, random_state=k)
        model = MaxMarginClustering(k, random_state=0).fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1
        assert_array_equal(model.predict(X), model.labels_)
        assert model.decision_function(X).shape == ((40 * k,) if k == 2 else (40 * k, k))
    X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    model = MaxMarginClustering(kernel="rbf", gamma=2.0, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert_array_equal(model.decision_function(X) > 0, model.labels_ == 1)


def test_long_clusters_that_k_means_would_cut():
    rng = np.random.default_rng(0)
    X = np.column_stack([20 * rng.random(300), np.repeat([0.0, 3.0], 150) + 0.3 * rng.normal(size=300)])
    model = MaxMarginClustering(random_state=0).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], 150), model.labels_) == 1


# ------------------------------------------------------------------------------------------------ all clusterings


@pytest.mark.parametrize("k", [2, 3])
def test_the_best_of_all_clusterings_of_few_rows(k):
    n = 11 if k == 2 else 7
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        weight = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
        K, C = rbf_kernel(X, gamma=0.5), 10.0 ** (seed % 3 - 1)
        best = min(cost(K, simplex(k)[labels], C, weight) for labels in balanced_labels(n, k, weight, 0.5))
        model = MaxMarginClustering(k, C=C, kernel="rbf", gamma=0.5, balance=0.5, n_init=20, random_state=seed).fit(
            X, sample_weight=weight
        )
        assert_allclose(model.objective_, cost(K, simplex(k)[model.labels_], C, weight), rtol=1e-9)
        assert_allclose(model.objective_, best, rtol=1e-9)
        assert 0 < model.lower_bound_ <= best * (1 + 1e-9)
        assert np.bincount(model.labels_, weights=weight).min() >= 0.5 * weight.sum() / k - 1e-9
        rough = MaxMarginClustering(k, C=C, kernel="rbf", gamma=0.5, balance=0.5, relaxation=False).fit(X, None, weight)
        assert rough.lower_bound_ <= model.lower_bound_ * (1 + 1e-9)


def test_the_relaxation_is_tight_for_clear_clusters():
    X = np.repeat([[0.0], [1.0]], 10, axis=0) + 1e-3 * np.random.default_rng(0).normal(size=(20, 1))
    model = MaxMarginClustering(C=0.1, balance=1.0, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, np.repeat([0, 1], 10)) == 1
    assert model.objective_ - model.lower_bound_ < 1e-3 * model.objective_


def test_no_single_move_helps():
    X = np.random.default_rng(3).normal(size=(60, 3))  # no clusters at all: many local minima
    K = rbf_kernel(X, gamma=1 / 3)
    model = MaxMarginClustering(kernel="rbf", C=3.0, n_init=2, random_state=0).fit(X)
    T = 1.0 - 2 * model.labels_[:, None]
    here = cost(K, T, 3.0, np.ones(60))
    for i in range(60):
        T[i] *= -1
        if np.abs(T.sum()) <= 0.2 * 60:
            assert cost(K, T, 3.0, np.ones(60)) >= here * (1 - 1e-8)
        T[i] *= -1
    assert model.certificate_.holds
    assert "no clustering at all" in model.certificate_.meaning
    assert np.all(np.diff(model.history_.objective) <= 0)
    assert model.n_iter_ == 2


# ------------------------------------------------------------------------------------------------ invariances


def test_weights_are_repetitions_and_rows_without_weight_are_predicted():
    X = np.random.default_rng(1).normal(size=(60, 2))  # no clusters: where the search ends depends on all it sees
    weight = np.random.default_rng(0).integers(0, 3, 60)
    options = {"kernel": "rbf", "gamma": 2.0, "C": 1.0, "random_state": 0}
    weighted = MaxMarginClustering(**options).fit(X, sample_weight=weight)
    order = np.random.default_rng(2).permutation(weight.sum())
    repeated = MaxMarginClustering(**options).fit(np.repeat(X, weight, axis=0)[order])
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-12)
    assert_allclose(weighted.lower_bound_, repeated.lower_bound_, rtol=1e-6)
    assert_array_equal(np.repeat(weighted.labels_, weight)[order], repeated.labels_)
    assert_array_equal(weighted.labels_[weight == 0], weighted.predict(X[weight == 0]))
    assert weighted.X_fit_.shape[0] == (weight > 0).sum()
    given = MaxMarginClustering(kernel="precomputed", random_state=0).fit(rbf_kernel(X, gamma=2.0), None, weight)
    assert_array_equal(given.predict(rbf_kernel(X[weight == 0], X, gamma=2.0)), given.labels_[weight == 0])


def test_other_containers_and_orders():
    X, _ = make_blobs(80, centers=2, random_state=3)
    options = {"kernel": "rbf", "gamma": 0.2, "random_state": 0}
    model = MaxMarginClustering(**options).fit(X)
    for other in (
        MaxMarginClustering(**options).fit(sp.csr_matrix(X)),
        MaxMarginClustering(kernel="precomputed", random_state=0).fit(rbf_kernel(X, gamma=0.2)),
        MaxMarginClustering(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2), random_state=0).fit(X),
    ):
        assert_array_equal(other.labels_, model.labels_)
        assert_allclose(other.objective_, model.objective_, rtol=1e-6)
    order = np.random.default_rng(0).permutation(80)
    assert_array_equal(MaxMarginClustering(**options).fit(X[order]).labels_, model.labels_[order])
    single = MaxMarginClustering(**options).fit(X.astype(np.float32))
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    texts = ["abababab", "babababa", "ababab", "cdcdcdcd", "dcdcdcdc", "cdcdcd"]
    words = MaxMarginClustering(kernel=ep.kernel.Spectrum(2), random_state=0).fit(texts)
    assert adjusted_rand_score(words.labels_, [0, 0, 0, 1, 1, 1]) == 1
    assert_array_equal(words.predict(["abab", "cdcd"]), words.labels_[[0, 3]])


def test_one_cluster():
    model = MaxMarginClustering(1).fit(np.arange(12.0).reshape(6, 2))
    assert not model.labels_.any()
    assert not model.predict([[0.0, 1.0]]).any()
    assert model.objective_ == model.lower_bound_ == 0


def test_identical_rows():
    model = MaxMarginClustering(random_state=0).fit(np.ones((10, 3)))
    assert np.bincount(model.labels_).min() >= 4
    assert_allclose(model.objective_, model.lower_bound_, rtol=0.05)


def test_bad_arguments():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for bad in ({"n_clusters": 0}, {"C": 0}, {"balance": 0}, {"balance": 1.5}, {"n_init": 0}, {"gamma": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            MaxMarginClustering(**bad).fit(X)
    with pytest.raises(DataError, match="fewer than n_clusters=30"):
        MaxMarginClustering(30).fit(X)
    with pytest.raises(DataError, match="2 samples with a weight"):
        MaxMarginClustering(3).fit(X, sample_weight=np.r_[1, 1, np.zeros(18)])
