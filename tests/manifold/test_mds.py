"""Scaling: planted maps, scikit-learn, gradients and monotone regression by independent means."""

import numpy as np
import pytest
import sklearn.manifold
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, isotonic_regression
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.manifold._majorizer import Majorizer, Order


@pytest.fixture(scope="module")
def town():
    """(places on a map, their distances)."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 100, size=(60, 2))
    return places, squareform(pdist(places))


@pytest.fixture(scope="module")
def digits():
    D = squareform(pdist(load_digits().data[:120]))
    return D, np.random.default_rng(1).uniform(size=(120, 2))


def stress(D, Z, W=None):
    d = pdist(Z)
    w = np.ones_like(d) if W is None else squareform(W, checks=False)
    return float((w * (d - squareform(D)) ** 2).sum())


def test_a_planted_map_is_recovered(town, distance_from):
    places, D = town
    classical = ep.ClassicalMDS(metric="precomputed").fit(D)
    assert distance_from(places, classical.embedding_) < 1e-20
    assert classical.strain_ < 1e-6
    assert "the distances are Euclidean" in classical.certificate_.meaning
    for options in ({"metric_mds": True}, {"metric_mds": False}, {"init": "random", "n_init": 4, "random_state": 0}):
        model = ep.MDS(metric="precomputed", eps=1e-10, max_iter=3000, **options).fit(D)
        assert distance_from(places, model.embedding_) < 1e-5
        assert model.certificate_.holds
    # only the order of distances is known, and the map comes out
    model = ep.MDS(metric="precomputed", metric_mds=False, max_iter=3000, eps=1e-9).fit(np.sqrt(D) ** 3)
    assert distance_from(places, model.embedding_) < 1e-3


@pytest.mark.parametrize("metric", [True, False])
def test_equal_to_scikit_learn(metric, digits, same_up_to_sign):
    D, start = digits
    for iterations in (1, 40):
        ours = ep.smacof(D, metric=metric, init=start, max_iter=iterations, eps=0, return_n_iter=True)
        theirs = sklearn.manifold.smacof(
            D, metric=metric, init=start, max_iter=iterations, eps=0, return_n_iter=True, n_init=1
        )
        assert_allclose(ours[0], theirs[0], atol=1e-9 * np.abs(theirs[0]).max())
        assert ours[2] == theirs[2]
    assert_allclose(
        ours[1], theirs[1], rtol=1e-9 if metric else 1e-3
    )  # targets are one step newer here, so it is lower
    assert ours[1] <= theirs[1] * (1 + 1e-9)
    same_up_to_sign(
        ep.ClassicalMDS(metric="precomputed").fit_transform(D),
        sklearn.manifold.ClassicalMDS(metric="precomputed").fit_transform(D),
        atol=1e-9,
    )


def test_stress_never_rises_and_its_gradient_is_the_certificate(digits):
    D, start = digits
    rng = np.random.default_rng(0)
    W = squareform(rng.uniform(0.1, 1, size=120 * 119 // 2))
    for weights in (None, W):
        model = ep.MDS(metric="precomputed", eps=1e-7, max_iter=2000).fit(
            D, init=start, weights=None if weights is None else 3 * W
        )
        assert np.all(np.diff(model.history_.objective) < 0)
        Z = model.embedding_
        U = np.ones((120, 120)) - np.eye(120) if weights is None else 3 * W
        assert_allclose(model.stress_, stress(D, Z, U), rtol=1e-9)
        slope = approx_fprime(Z.ravel(), lambda z, U=U: stress(D, z.reshape(-1, 2), U), 1e-4).reshape(-1, 2)
        V = np.diag(U.sum(axis=1)) - U
        size = np.trace(Z.T @ V @ Z)
        expected = np.sqrt(np.trace(slope.T @ np.linalg.pinv(V) @ slope) / 4 / size)  # the norm of majorisation
        assert_allclose(model.certificate_.value, expected, rtol=0.05, atol=1e-6)
        assert model.certificate_.holds


def test_targets_by_order_are_monotone_regression():
    rng = np.random.default_rng(3)
    D = squareform(rng.integers(1, 30, size=190).astype(float))  # with ties
    Z, W = rng.normal(size=(20, 2)), squareform(rng.integers(0, 3, size=190).astype(float))
    for weight in (None, W):
        T = squareform(Order(D, weight).targets(Z), checks=False)
        d, t, w = pdist(Z), squareform(D), np.ones(190) if weight is None else squareform(W)
        levels = np.unique(t[w > 0])
        share = np.array([w[t == level].sum() for level in levels])
        means = np.array([(w * d)[t == level].sum() for level in levels]) / share
        fitted = isotonic_regression(means, weights=share).x
        fitted *= np.sqrt(w.sum() / (share * fitted**2).sum())
        for level, value in zip(levels, fitted, strict=True):
            assert_allclose(T[(t == level) & (w > 0)], value, rtol=1e-12)


def test_weights_of_pairs(town):
    places, D = town
    noise = squareform(np.random.default_rng(0).normal(size=60 * 59 // 2) * 20)
    spoilt, W = np.abs(D + noise), np.ones((60, 60))
    W[:30, 30:] = W[30:, :30] = 0.0
    W[:5, 30:35] = W[30:35, :5] = 1.0  # a bridge
    mixed = np.where(W > 0, D, spoilt)
    model = ep.MDS(metric="precomputed", eps=1e-12, max_iter=5000).fit(mixed, weights=W)
    assert model.stress_ < 1e-3 * stress(mixed, places)  # what has no weight does not count
    W[:30, 30:] = W[30:, :30] = 0.0
    with pytest.raises(DataError, match="do not connect"):
        ep.MDS(metric="precomputed").fit(D, weights=W)
    with pytest.raises(DataError, match="weights: expected a symmetric"):
        ep.MDS(metric="precomputed").fit(D, weights=np.triu(np.ones((60, 60))))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-150, 1e-2, 1e3, 1e150]))
def test_scale_order_and_repetition(seed, scale):
    rng = np.random.default_rng(seed)
    X, order, often = rng.normal(size=(12, 3)), rng.permutation(12), rng.integers(1, 4, size=12)
    D, start = squareform(pdist(X)), rng.normal(size=(12, 2))
    model = ep.MDS(metric="precomputed", max_iter=200, eps=1e-5, normalized_stress=True)
    plain = model.fit(D, init=start).embedding_
    assert_allclose(model.fit(D * scale, init=start * scale).embedding_ / scale, plain, rtol=1e-6, atol=1e-9)
    assert_allclose(
        model.fit(D[np.ix_(order, order)], init=start[order]).embedding_, plain[order], rtol=1e-6, atol=1e-9
    )
    weighted = ep.smacof(D, init=start, max_iter=20, eps=0, weights=np.outer(often, often))[0]
    again = np.repeat(np.arange(12), often)
    repeated = ep.smacof(D[np.ix_(again, again)], init=start[again], max_iter=20, eps=0)[0]
    shift = repeated.mean(axis=0) - weighted[again].mean(axis=0)
    assert_allclose(repeated - shift, weighted[again], rtol=1e-6, atol=1e-9)


def test_threads_give_the_same_bits(digits):
    D, start = digits
    found = []
    for threads in (1, 2, 4):
        work = Majorizer(D, None, metric=True, n_jobs=threads)
        found.append(work.run(start, 10, 0.0, lambda *_: False).places)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("kind", [ep.ClassicalMDS, ep.MDS])
@pytest.mark.parametrize("landmarks", [None, 40])
def test_fits_give_the_same_bits_on_any_number_of_threads(kind, landmarks):
    X = load_digits().data[:300]
    places = []
    for jobs in (1, 2, 4):
        with ep.config(n_jobs=jobs):
            places.append(kind(n_landmarks=landmarks).fit_transform(X))
    assert np.array_equal(places[1], places[0])
    assert np.array_equal(places[2], places[0])


def test_distances_that_are_not_euclidean():
    D = np.array([[0, 1, 1, 1], [1, 0, 2, 2], [1, 2, 0, 2], [1, 2, 2, 0]], dtype=float)  # a star
    model = ep.ClassicalMDS(3, metric="precomputed").fit(D)
    # by hand: on vectors (a, b, b, b) B is [[-3, 3], [1, -1]] / 16
    assert_allclose(model.least_eigenvalue_, -0.25, atol=1e-12)
    assert "no points have these distances" in model.certificate_.meaning
    assert np.isfinite(model.embedding_).all()
    large = squareform(pdist(np.random.default_rng(0).normal(size=(700, 2)), "chebyshev"))  # by Lanczos' method
    model = ep.ClassicalMDS(metric="precomputed").fit(large)
    H = np.eye(700) - 1 / 700
    values = np.linalg.eigvalsh(-0.5 * H @ large**2 @ H)
    assert_allclose(model.eigenvalues_, values[:-3:-1], rtol=1e-8)
    assert_allclose(model.least_eigenvalue_, values[0], rtol=1e-4)
    assert_allclose(model.strain_**2, (values[:-2] ** 2).sum() / (values**2).sum(), rtol=1e-8)


def test_landmarks(distance_from):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 6))
    truth = ep.PCA(2).fit_transform(X)
    for model in (ep.ClassicalMDS(n_landmarks=12), ep.MDS(n_landmarks=30, eps=1e-10, max_iter=2000)):
        assert distance_from(truth, model.fit_transform(X)) < 1e-6  # a plane is recovered exactly
        assert len(set(model.landmarks_)) == model.n_landmarks
        assert model.dissimilarity_matrix_.shape == (500, model.n_landmarks)
    bent = np.column_stack([X, np.sin(X[:, :2])])
    full, some = ep.MDS().fit(bent), ep.MDS(n_landmarks=60).fit(bent)
    D = squareform(pdist(bent))
    assert stress(D, some.embedding_) < 2 * stress(D, full.embedding_)
    by_order = ep.MDS(n_landmarks=60, metric_mds=False).fit(bent)
    assert distance_from(full.embedding_, by_order.embedding_) < 0.02
    with pytest.raises(ParameterError, match="n_landmarks=2; expected more than n_components=2"):
        ep.MDS(n_landmarks=2).fit(X)
    with pytest.raises(ParameterError, match="expected None where weights"):
        ep.MDS(n_landmarks=20).fit(X, weights=np.ones((500, 500)))


def test_starts_metrics_and_warnings(town, digits):
    X = town[0]
    one = ep.MDS(init="random", random_state=3).fit(X)
    several = ep.MDS(init="random", random_state=3, n_init=3).fit(X)
    assert several.stress_ <= one.stress_
    assert set(several.history_["start"]) == {0.0, 1.0, 2.0}
    assert np.array_equal(ep.MDS(init="random", random_state=3).fit_transform(X), one.embedding_)
    named = ep.MDS(metric="minkowski", metric_params={"p": 1}).fit(X)
    assert_allclose(named.dissimilarity_matrix_, squareform(pdist(X, "cityblock")), rtol=1e-12)
    assert one.trustworthiness_ > 0.95
    with pytest.warns(ConvergenceWarning):
        ep.MDS(max_iter=3, metric="precomputed").fit(digits[0])
    with pytest.warns(UserWarning, match="square matrix"):
        ep.MDS().fit(np.random.default_rng(0).normal(size=(8, 8)))
    with pytest.warns(FutureWarning, match="Use metric_mds"):
        ep.MDS(metric=False).fit(X)
    with pytest.warns(FutureWarning, match="`dissimilarity` parameter is"):
        ep.MDS(dissimilarity="precomputed").fit(town[1])


@pytest.mark.parametrize(
    ("D", "words"),
    [
        ([[0, 1], [2, 0]], "Array must be symmetric"),
        ([[0, 1, 2], [1, 0, 1]], "2-dimensional and square"),
        ([[0, -1], [-1, 0]], "Negative values"),
    ],
)
def test_what_is_refused(D, words):
    for model in ep.MDS(metric="precomputed"), ep.ClassicalMDS(metric="precomputed"):
        with pytest.raises(DataError, match=words):
            model.fit(np.array(D, dtype=float))


def test_equal_rows_and_few_rows():
    with np.errstate(all="raise"):
        assert np.isfinite(ep.MDS(metric_mds=False).fit_transform(np.ones((7, 3)))).all()
    with pytest.raises(MemoryError, match="n_components"):
        ep.MDS(10**9).fit(np.arange(15.0).reshape(5, 3))
    assert ep.ClassicalMDS(10**9).fit_transform(np.arange(15.0).reshape(5, 3)).shape == (5, 5)
    assert_allclose(ep.MDS().fit_transform(np.ones((7, 3))), 0, atol=1e-12)
    assert_allclose(ep.ClassicalMDS().fit_transform(np.ones((7, 3))), 0, atol=1e-12)
    Z = ep.MDS(3).fit_transform(np.array([[0.0, 0.0, 1.0], [3.0, 4.0, 1.0]]))  # more coordinates than there can be
    assert_allclose(np.linalg.norm(Z[0] - Z[1]), 5, rtol=1e-3)
