"""t-SNE against sums written out, numerical gradients and scikit-learn; its methods against each other."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist, squareform
from sklearn import manifold
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.manifold._t_sne import _joint_probabilities
from sklearn.metrics import pairwise_distances

import epicycle as ep
from epicycle import _native
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.manifold._tsne_affinities import Affinities, Search, gaussian
from epicycle.manifold._tsne_descent import Repulsion

pytestmark = pytest.mark.filterwarnings("ignore:TSNE")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[::3], y[::3]


def affinities(X, perplexity, k=None):
    search = Search.among(X, "euclidean", None, None)
    return gaussian(search, perplexity, k or len(X) - 1, None)


def kl(P, Y, nu=1.0):
    """The divergence, from all pairs."""
    K = (1 + cdist(Y, Y, "sqeuclidean") / nu) ** (-(nu + 1) / 2)
    np.fill_diagonal(K, 0)
    Q = K / K.sum()
    seen = P > 0
    return float(np.sum(P[seen] * np.log(P[seen] / Q[seen])))


def gradient_of(found: Affinities, Y, repulsion: Repulsion, threads=1):
    return _native.manifold.gradient(np.ascontiguousarray(Y), found.edges(), repulsion.forces(1.0), threads)


def test_affinities_are_those_of_scikit_learn(digits):
    X = digits[0][:80]
    found = affinities(X, 12.0).graph.toarray()
    expected = squareform(_joint_probabilities(pairwise_distances(X, squared=True, metric="euclidean"), 12.0, 0))
    assert_allclose(found, expected, atol=1e-7)
    assert_allclose(found.sum(), 1.0)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_gradient_is_the_slope_of_the_divergence(digits, dim):
    rng = np.random.default_rng(dim)
    found = affinities(digits[0][:25], 5.0)
    P, Y, nu = found.graph.toarray(), rng.normal(size=(25, dim)), float(max(dim - 1, 1))
    g, attraction, Z = gradient_of(found, Y, Repulsion("exact", nu))
    assert_allclose(found.entropy + attraction + np.log(Z), kl(P, Y, nu), rtol=1e-6)
    numerical = approx_fprime(Y.ravel(), lambda y: kl(P, y.reshape(Y.shape), nu), 1e-7).reshape(Y.shape)
    assert_allclose(g, numerical, atol=2e-6)


@pytest.mark.parametrize(
    ("repulsion", "bound"),
    [(Repulsion("fft"), 0.01), (Repulsion("barnes_hut", angle=0.2), 0.01), (Repulsion("barnes_hut", angle=0.5), 0.05)],
)
@pytest.mark.parametrize("spread", [1e-4, 0.1, 3.0, 30.0])
def test_fast_repulsion_meets_the_sum_over_all_pairs(repulsion, bound, spread):
    rng = np.random.default_rng(0)
    Y = spread * np.concatenate([rng.normal(size=(700, 2)), 0.2 * rng.normal(size=(700, 2)) + [1.0, 2.0]])
    found = affinities(rng.normal(size=(1400, 3)), 5.0, 15)
    exact, _, Z = gradient_of(found, Y, Repulsion("exact"))
    fast, _, fast_Z = gradient_of(found, Y, repulsion)
    assert np.linalg.norm(fast - exact) < bound * np.linalg.norm(exact)
    assert abs(fast_Z / Z - 1) < bound


def test_divergence_is_no_higher_than_that_of_scikit_learn(digits):
    X, y = (a[:300] for a in load_digits(return_X_y=True))
    model = ep.TSNE(random_state=0).fit(X)
    theirs = manifold.TSNE(random_state=0, method="barnes_hut").fit(X)
    found = affinities(X, 30.0, 91)
    P = found.graph.toarray()
    assert_allclose(model.kl_divergence_, kl(P, model.embedding_.astype(float)), rtol=1e-3)
    assert model.kl_divergence_ <= kl(P, theirs.embedding_.astype(float)) * 1.01
    assert model.trustworthiness_ > 0.95
    near = cdist(model.embedding_, model.embedding_).argsort(axis=1)[:, 1]
    assert np.mean(y[near] == y) > 0.9


def test_history_certificate_and_attributes(digits):
    model = ep.TSNE(random_state=0, max_iter=500).fit(digits[0])
    assert model.n_iter_ == 500
    assert len(model.history_.objective) == model.n_steps_ == 10
    assert np.all(np.diff(model.history_.objective[5:]) < 0)  # after the exaggeration
    assert model.history_.objective[-1] == model.kl_divergence_
    assert "no proof of optimality" in model.certificate_.meaning
    assert "trustworthiness" in model.certificate_.meaning
    assert model.embedding_.dtype == np.float32


@pytest.mark.parametrize("method", ["fft", "barnes_hut", "exact"])
def test_bits_do_not_depend_on_threads(digits, method):
    found = [
        ep.TSNE(method=method, max_iter=100, n_jobs=n_jobs, random_state=0).fit_transform(digits[0])
        for n_jobs in (1, 2, 4)
    ]
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


def test_grid_in_blocks_of_points_has_the_same_bits_on_all_threads():
    rng = np.random.default_rng(0)
    Y = 20 * rng.normal(size=(20_000, 2))  # several blocks of points, each with a grid of its own
    found = Affinities(affinities(rng.normal(size=(20_000, 2)), 2.0, 5).graph, 0.0)
    results = [gradient_of(found, Y, Repulsion("fft"), threads) for threads in (1, 2, 4)]
    for g, _, Z in results[1:]:
        assert_array_equal(g, results[0][0])
        assert results[0][2] == Z


def test_new_rows_go_where_their_class_is(digits):
    X, y = digits
    model = ep.TSNE(random_state=0, method="fft").fit(X[:500])
    places = model.transform(X[500:])
    nearest = cdist(places, model.embedding_).argmin(axis=1)
    assert np.mean(y[:500][nearest] == y[500:]) > 0.85
    assert_array_equal(model.transform(X[:5]), model.embedding_[:5])
    assert_array_equal(model.transform(X[500:510]), places[:10])  # new rows do not see each other
    alone = ep.TSNE(random_state=0, method="exact").fit(X[:500])
    assert_allclose(np.ptp(alone.transform(X[500:]), axis=0), np.ptp(alone.embedding_, axis=0), rtol=0.3)


def test_a_new_row_is_at_a_minimum_of_its_own_divergence(digits):
    X = digits[0]
    model = ep.TSNE(random_state=0, method="exact", perplexity=10.0).fit(X[:200])
    x = X[200:201]
    y = model.transform(x)[0].astype(float)
    distances, rows = Search.among(X[:200], "euclidean", None, None).of_queries(x, 31)
    p = model._conditional(distances)[0]

    def energy(at):
        d = ((at - model._places_) ** 2).sum(axis=1)
        return p @ np.log1p(d[rows[0]]) + np.log(np.sum(1 / (1 + d)))

    assert np.abs(approx_fprime(y, energy, 1e-6)).max() < 1e-3


@pytest.mark.parametrize("exponent", [-1000, -500, 500, 1018])
def test_the_unit_of_the_rows_does_not_matter(exponent):
    X, _ = make_blobs(60, 4, centers=3, random_state=0)
    model = ep.TSNE(perplexity=5.0, random_state=0, init="random", max_iter=300)
    expected = model.fit_transform(X)
    assert_array_equal(model.fit_transform(np.ldexp(X, exponent)), expected)
    assert np.isfinite(clone(model).set_params(init="pca").fit_transform(np.ldexp(X, exponent))).all()


@pytest.mark.parametrize("X", [np.ones((40, 3)), np.repeat(np.eye(4), 10, axis=0), np.arange(40.0)[:, None]])
@pytest.mark.parametrize("method", ["exact", "barnes_hut", "fft"])
def test_equal_rows_and_single_columns_have_finite_places(X, method):
    model = ep.TSNE(perplexity=5.0, random_state=0, method=method).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X[:3] + 0.1)).all()


def test_wrong_arguments_are_named():
    X = np.random.default_rng(0).normal(size=(20, 3))
    for options, error, words in (
        ({"perplexity": 20}, DataError, "perplexity"),
        ({"n_components": 4, "method": "barnes_hut", "perplexity": 2}, ParameterError, "n_components"),
        ({"n_components": 3, "method": "fft", "perplexity": 2}, ParameterError, "n_components"),
        ({"n_components": 10**9}, ParameterError, "n_components"),
        ({"init": np.zeros((3, 2)), "perplexity": 2}, DataError, "init"),
        ({"metric": "precomputed", "perplexity": 2}, ParameterError, "init"),
    ):
        with pytest.raises(error, match=words):
            ep.TSNE(**options).fit(X)


@settings(max_examples=8)
@given(st.integers(3, 40), st.integers(1, 5), st.integers(1, 3), st.integers(0, 100))
def test_places_are_finite_and_the_divergence_is_theirs(n, p, k, seed):
    X = np.random.default_rng(seed).normal(size=(n, p)).round(1)
    model = ep.TSNE(k, perplexity=min(5.0, n / 2), random_state=0, max_iter=300)
    Y = model.fit_transform(X)
    assert Y.shape == (n, k)
    assert np.isfinite(Y).all()
    assert np.isfinite(model.kl_divergence_)
    P = affinities(X, min(5.0, n / 2), min(n - 1, int(3 * min(5.0, n / 2) + 1))).graph.toarray()
    assert_allclose(model.kl_divergence_, kl(P, Y.astype(float), max(k - 1.0, 1.0)), rtol=1e-3, atol=1e-5)


def test_interrupt_ends_a_fit_within_a_second():
    X = np.random.default_rng(0).normal(size=(4000, 5))
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        ep.TSNE(method="barnes_hut", max_iter=100_000).fit(X)
    assert time.perf_counter() - began < 4.0


def test_steps_that_are_too_long_leave_the_last_places_that_are_numbers():
    X = np.zeros((12, 1))
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model = ep.TSNE(41, perplexity=0.9, early_exaggeration=1.0, min_grad_norm=1.5, random_state=4).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X)).all()
    assert not model.certificate_.holds
