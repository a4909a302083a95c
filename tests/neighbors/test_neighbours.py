"""Nearest neighbours against brute force in NumPy and against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import neighbors
from sklearn.datasets import load_digits, load_iris

from epicycle import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from epicycle.exceptions import DataError, ParameterError

METRICS = [
    ("euclidean", 2, {}),
    ("manhattan", 2, {}),
    ("chebyshev", 2, {}),
    ("cosine", 2, {}),
    ("minkowski", 3, {"p": 3}),
]
NAMES = {"manhattan": "cityblock"}


def by_hand(X, Q, k, metric, options):
    """Ties go to the row that comes first."""
    D = cdist(np.asarray(Q, float), np.asarray(X, float), NAMES.get(metric, metric), **options)
    rows = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, rows, axis=1), rows


@pytest.mark.parametrize(("metric", "p", "options"), METRICS, ids=[m[0] for m in METRICS])
@pytest.mark.parametrize("kind", ["narrow", "wide", "sparse"])
def test_the_nearest_rows_are_those_of_brute_force(metric, p, options, kind):
    rng = np.random.default_rng(0)
    columns = 3 if kind == "narrow" else 23
    X, Q = rng.standard_normal((1500, columns)), rng.standard_normal((300, columns))
    if kind == "sparse":
        X[rng.random(X.shape) < 0.7] = Q[rng.random(Q.shape) < 0.7] = 0.0
    distances, rows = by_hand(X, Q, 7, metric, options)
    given = (sp.csr_array(X), sp.csr_array(Q)) if kind == "sparse" else (X, Q)
    model = NearestNeighbors(n_neighbors=7, metric=metric, p=p).fit(given[0])
    found, which = model.kneighbors(given[1])
    assert_allclose(found, distances, rtol=1e-9, atol=1e-12)
    assert_array_equal(which, rows)


@settings(max_examples=60)
@given(
    st.integers(0, 2**31),
    st.integers(1, 40),
    st.integers(1, 30),
    st.integers(1, 12),
    st.sampled_from([2.0**-27, 1.0, 2.0**20]),
    st.booleans(),
)
def test_ties_scales_and_shapes(seed, n, m, p, scale, far):
    rng = np.random.default_rng(seed)
    X, Q = (scale * rng.integers(-2, 3, (rows, p)).astype(float) for rows in (n, m))  # many ties
    if far:
        X[0] += 1e7 * scale
    k = int(rng.integers(1, n + 1))
    distances, rows = by_hand(X, Q, k, "euclidean", {})
    for algorithm in ("brute", "kd_tree"):
        found, which = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(X).kneighbors(Q)
        assert_allclose(found, distances, rtol=1e-9, atol=1e-9 * scale)
        # Distances that differ by rounding alone may be in either order.
        same = np.take_along_axis(cdist(Q, X), which, axis=1)
        assert_allclose(same, distances, rtol=1e-9, atol=1e-9 * scale)
        if not far:
            assert_array_equal(which, rows)


def test_float32_permuted_rows_and_threads():
    rng = np.random.default_rng(1)
    X, Q = rng.standard_normal((2000, 20)).astype(np.float32), rng.standard_normal((500, 20)).astype(np.float32)
    one, two = (NearestNeighbors(n_neighbors=5, n_jobs=jobs).fit(X).kneighbors(Q) for jobs in (1, 2))
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])
    assert one[0].dtype == np.float32
    order = rng.permutation(len(X))
    shuffled = NearestNeighbors(n_neighbors=5).fit(X[order]).kneighbors(Q)
    assert_array_equal(order[shuffled[1]], one[1])


@pytest.mark.parametrize(
    "weights", ["uniform", "distance", lambda d: np.exp(-d)], ids=["uniform", "distance", "function"]
)
def test_votes_and_means_are_those_of_scikit_learn(weights):
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 1200), slice(1200, None)
    ours = KNeighborsClassifier(4, weights=weights).fit(X[train], y[train])
    theirs = neighbors.KNeighborsClassifier(4, weights=weights, algorithm="brute").fit(X[train], y[train])
    same = (ours.kneighbors(X[test])[1] == theirs.kneighbors(X[test])[1]).all(axis=1)  # ties differ
    assert same.mean() > 0.95
    assert_allclose(ours.predict_proba(X[test])[same], theirs.predict_proba(X[test])[same], atol=1e-7)
    Y = np.column_stack([y, -2.0 * y])
    ours = KNeighborsRegressor(4, weights=weights).fit(X[train], Y[train])
    theirs = neighbors.KNeighborsRegressor(4, weights=weights, algorithm="brute").fit(X[train], Y[train])
    assert_allclose(ours.predict(X[test])[same], theirs.predict(X[test])[same], atol=1e-6)


def test_one_neighbour_interpolates():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    assert_array_equal(KNeighborsRegressor(1).fit(X, y).predict(X), y)
    assert_allclose(KNeighborsRegressor(9, weights="distance").fit(X, y).predict(X), y, rtol=1e-12)


def test_without_x_every_row_is_left_out():
    X, y = load_iris(return_X_y=True)
    model = KNeighborsClassifier(3).fit(X, y)
    expected = [
        KNeighborsClassifier(3).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(len(y))
    ]
    assert_array_equal(model.predict(), expected)


def test_graph_is_that_of_scikit_learn():
    X = np.random.default_rng(3).standard_normal((60, 4))
    for mode in ("connectivity", "distance"):
        graph = NearestNeighbors(n_neighbors=4).fit(X).kneighbors_graph(mode=mode)
        expected = neighbors.NearestNeighbors(n_neighbors=4).fit(X).kneighbors_graph(mode=mode)
        assert_allclose(graph.toarray(), expected.toarray(), atol=1e-12)


def test_bad_requests_are_named():
    X = np.eye(4)
    with pytest.raises(DataError, match="n_neighbors"):
        NearestNeighbors(n_neighbors=5).fit(X).kneighbors(X)
    with pytest.raises(ParameterError, match="n_neighbors"):
        NearestNeighbors(n_neighbors=0).fit(X)
    with pytest.raises(ParameterError, match="metric"):
        NearestNeighbors(metric="nearby").fit(X)
    with pytest.raises(ParameterError, match="kd_tree"):
        NearestNeighbors(algorithm="kd_tree", metric="cosine").fit(X)
    with pytest.raises(DataError, match="NaN"):
        NearestNeighbors().fit(np.full((3, 2), np.nan))
    with pytest.raises(ParameterError, match="weights"):
        KNeighborsRegressor(2, weights=lambda d: -d).fit(X, np.arange(4.0)).predict(X)
