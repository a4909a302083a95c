"""SNE and the family between attraction and repulsion: against sums written out, t-SNE and each other."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle import _native
from epicycle.exceptions import DataError, ParameterError
from epicycle.manifold._sne import _Divergence
from epicycle.manifold._tsne_affinities import Search, conditional, fuzzy
from epicycle.manifold._tsne_descent import Repulsion

pytestmark = pytest.mark.filterwarnings("ignore:(SNE|NeighborEmbedding)")
SOFT = 0.1


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def conditional_of(X, perplexity):
    distances, rows = Search.among(X, "euclidean", None, None).of_rows(len(X) - 1)
    P = np.zeros((len(X), len(X)))
    np.put_along_axis(P, rows, conditional(distances, perplexity, None), axis=1)
    return P


def sne(P, Y):
    E = np.exp(-cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(E, 0)
    Q = E / E.sum(axis=1, keepdims=True)
    seen = P > 0
    return float(np.sum(P[seen] * np.log(P[seen] / Q[seen])))


@pytest.mark.parametrize("threads", [1, 3])
def test_sne_and_its_gradient(digits, threads):
    P, Y = conditional_of(digits[0][:27], 5.0), np.random.default_rng(0).normal(size=(27, 2))
    F = _Divergence(P, 2, threads)
    value, gradient = F.value_and_gradient(Y.ravel())
    assert_allclose(value, sne(P, Y), rtol=1e-12)
    numerical = approx_fprime(Y.ravel(), lambda y: sne(P, y.reshape(Y.shape)), 1e-7)
    assert_allclose(gradient, numerical, atol=1e-5)
    assert_allclose(np.exp(-np.sum(np.where(P > 0, P * np.log(np.where(P > 0, P, 1)), 0), axis=1)), 5.0, rtol=1e-6)


def test_sne_ends_at_a_stationary_point_below_its_start(digits):
    X = digits[0][:150]
    model = ep.SNE(random_state=0, perplexity=15.0).fit(X)
    assert model.converged_
    assert_allclose(model.kl_divergence_, sne(conditional_of(X, 15.0), model.embedding_), rtol=1e-9)
    assert np.all(np.diff(model.history_.objective) <= 1e-9)
    assert "no proof of optimality" in model.certificate_.meaning
    assert model.trustworthiness_ > 0.95
    again = ep.SNE(random_state=0, perplexity=15.0, n_jobs=2).fit(X)
    assert_array_equal(again.embedding_, model.embedding_)


def test_fuzzy_weights_add_up_to_the_logarithm_of_their_number(digits):
    search = Search.among(digits[0][:100], "euclidean", None, None)
    distances, _ = search.of_rows(15)
    w = _native.manifold.fuzzy(distances, np.log2(15), 1)
    assert_allclose(w.sum(axis=1), np.log2(15), atol=1e-6)
    assert_array_equal(w[:, 0], 1.0)  # the nearest is a neighbour for sure
    found = fuzzy(search, 15, None).graph
    assert_allclose(found.sum(), 1.0)
    assert abs(found - found.T).max() < 1e-15


def energy(P, Y, m):
    d = cdist(Y, Y, "sqeuclidean")
    push = np.log((1 + d) / (SOFT + d))
    np.fill_diagonal(push, 0)
    return float(np.sum(P * np.log1p(d)) + m / len(Y) ** 2 * push.sum())


def test_cross_entropy_and_its_gradient(digits):
    found = fuzzy(Search.among(digits[0][:40], "euclidean", None, None), 10, None)
    P, Y = found.graph.toarray(), 2 * np.random.default_rng(0).normal(size=(40, 2))
    parts = {"normalised": False, "factor": 5.0 / 40**2, "softness": SOFT, "step": 0.5 * SOFT**0.5}
    exact = Repulsion("exact", **parts)
    g, attraction, Z = _native.manifold.gradient(Y, found.edges(), exact.forces(1.0), 1)
    assert_allclose(attraction + exact.energy(Z), energy(P, Y, 5.0), rtol=1e-6)
    assert_allclose(g.ravel(), approx_fprime(Y.ravel(), lambda y: energy(P, y.reshape(Y.shape), 5.0), 1e-7), atol=1e-6)
    found, Y = fuzzy(Search.among(digits[0], "euclidean", None, None), 10, None), np.repeat(Y, 15, axis=0)
    Y += 0.3 * np.random.default_rng(1).normal(size=Y.shape)
    g, _, Z = _native.manifold.gradient(Y, found.edges(), exact.forces(1.0), 1)
    grid, _, grid_Z = _native.manifold.gradient(Y, found.edges(), Repulsion("fft", **parts).forces(1.0), 1)
    assert not np.array_equal(grid, g)  # few points take all pairs
    assert np.linalg.norm(grid - g) < 0.03 * np.linalg.norm(g)
    assert_allclose(grid_Z, Z, rtol=1e-3)


@pytest.mark.parametrize(("n", "spread"), [(60, 1.0), (500, 100.0)])
def test_few_points_and_points_far_apart_take_all_pairs_in_the_place_of_a_larger_grid(n, spread):
    X = np.random.default_rng(0).normal(size=(n, 2))
    edges = fuzzy(Search.among(X, "euclidean", None, None), 5, None).edges()
    for parts in ({"normalised": False, "softness": SOFT, "step": 0.1}, {}):
        forces = [Repulsion(method, **parts).forces(1.0) for method in ("fft", "exact")]
        found = [_native.manifold.gradient(spread * X, edges, f, 1)[0] for f in forces]
        assert_array_equal(found[0], found[1])


def test_tsne_is_a_member(digits):
    X = digits[0]
    member = ep.NeighborEmbedding(
        attraction="gaussian", repulsion="normalised", learning_rate=50.0, max_iter=400, random_state=0
    ).fit(X)
    tsne = ep.TSNE(learning_rate=50.0, max_iter=400, random_state=0).fit(X)
    assert_array_equal(member.embedding_, tsne.embedding_)
    assert member.objective_ == tsne.kl_divergence_


def test_more_attraction_gives_tighter_clusters(digits):
    X, y = digits
    spread = []
    for a in (0.5, 1.0, 4.0):
        Z = ep.NeighborEmbedding(
            attraction="gaussian", repulsion="normalised", exaggeration=a, random_state=0
        ).fit_transform(X)
        within = np.mean([np.linalg.norm(Z[y == c] - np.median(Z[y == c], axis=0), axis=1).mean() for c in range(10)])
        spread.append(within / np.linalg.norm(Z - Z.mean(axis=0), axis=1).mean())
    assert spread[0] > spread[1] > spread[2]


def test_umap_keeps_neighbours_and_places_new_rows(digits):
    X, y = digits
    model = ep.NeighborEmbedding(random_state=0).fit(X[:500])
    assert model.converged_
    assert model.trustworthiness_ > 0.97
    assert np.all(np.diff(model.history_.objective) < 0)
    places = model.transform(X[500:])
    nearest = cdist(places, model.embedding_).argmin(axis=1)
    assert np.mean(y[:500][nearest] == y[500:]) > 0.85
    assert_array_equal(model.transform(X[:4]), model.embedding_[:4])


@pytest.mark.parametrize("method", ["fft", "barnes_hut"])
def test_bits_do_not_depend_on_threads(digits, method):
    found = [
        ep.NeighborEmbedding(method=method, max_iter=60, n_jobs=n_jobs, random_state=0).fit_transform(digits[0])
        for n_jobs in (1, 2, 4)
    ]
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


@settings(max_examples=8)
@given(st.integers(3, 30), st.integers(1, 4), st.integers(1, 3), st.sampled_from(["fuzzy", "gaussian"]))
def test_places_are_finite(n, p, k, attraction):
    X = np.random.default_rng(n).normal(size=(n, p)).round()  # with equal rows
    for repulsion in ("cross_entropy", "normalised"):
        model = ep.NeighborEmbedding(
            k, attraction=attraction, repulsion=repulsion, perplexity=n / 3, max_iter=150, random_state=0
        )
        Y = model.fit_transform(X)
        assert Y.shape == (n, k)
        assert np.isfinite(Y).all()
        assert np.isfinite(model.objective_)


def test_wrong_arguments_are_named(digits):
    X = digits[0][:20]
    for model, error, words in (
        (ep.SNE(perplexity=20), DataError, "perplexity"),
        (ep.SNE(metric="precomputed", perplexity=2), DataError, "square"),
        (ep.NeighborEmbedding(attraction="gaussian", perplexity=25), DataError, "perplexity"),
        (ep.NeighborEmbedding(repulsion="other"), ParameterError, "repulsion"),
        (ep.NeighborEmbedding(n_neighbors=0), ParameterError, "n_neighbors"),
    ):
        with pytest.raises(error, match=words):
            model.fit(X)
