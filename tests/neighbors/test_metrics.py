"""Metrics, radii, graphs and several labels against SciPy, NumPy and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import neighbors
from sklearn.datasets import load_iris
from sklearn.metrics import DistanceMetric
from sklearn.pipeline import make_pipeline

import epicycle as ep
from epicycle.exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError

BOOLEAN = ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
REAL = ["braycurtis", "canberra", "correlation", "hamming", "sqeuclidean"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 6)), rng.normal(size=(40, 6))


def ordered(D, k):
    rows = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, rows, axis=1), rows


@pytest.mark.parametrize("metric", [*REAL, *BOOLEAN])
def test_metrics_by_name_are_those_of_scipy(table, metric):
    X, Q = (np.maximum(A, 0.0).round(1) for A in table)
    D = cdist(Q != 0, X != 0, metric) if metric in BOOLEAN else cdist(Q, X, metric)
    D = np.where(np.isnan(D), np.inf, D)
    distances, _ = ordered(D, 5)
    found, which = ep.NearestNeighbors(metric=metric).fit(X).kneighbors(Q)
    assert_allclose(found, distances, atol=1e-12)
    assert_allclose(np.take_along_axis(D, which, axis=1), distances, atol=1e-12)
    inside = ep.NearestNeighbors(metric=metric, radius=0.3).fit(X).radius_neighbors(Q, return_distance=False)
    for row, near in zip(D, inside, strict=True):
        assert_array_equal(near, np.flatnonzero(row <= 0.3))


def test_metrics_with_parameters(table):
    X, Q = table
    rng = np.random.default_rng(1)
    w, A = rng.random(6), rng.normal(size=(6, 6))
    VI = A @ A.T + np.eye(6)
    for metric, p, options in [
        ("minkowski", 3, {"w": w}),
        ("minkowski", 1, {"w": w}),
        ("minkowski", 1.5, {}),
        ("seuclidean", 2, {"V": w}),
        ("mahalanobis", 2, {"VI": VI}),
    ]:
        extra = {"p": p} if metric == "minkowski" else {}
        distances, rows = ordered(cdist(Q, X, metric, **options, **extra), 4)
        found, which = ep.NearestNeighbors(4, metric=metric, p=p, metric_params=options).fit(X).kneighbors(Q)
        assert_allclose(found, distances, rtol=1e-10)
        assert_array_equal(which, rows)
    with pytest.raises(ParameterError, match="metric_params"):
        ep.NearestNeighbors(metric="seuclidean").fit(X)
    with pytest.raises(ParameterError, match="metric_params"):
        ep.NearestNeighbors(metric="euclidean", metric_params={"q": 1}).fit(X)
    with pytest.raises(ParameterError, match="w has 2"):
        ep.NearestNeighbors(metric_params={"w": [1.0, 2.0]}).fit(X).kneighbors(Q)


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("p", [40.0, 1e3, 1e18, 1e300])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_huge_powers_are_finite_and_right(table, algorithm, p, scale):
    X, Q = (scale * A for A in table)
    difference = np.abs(Q[:, None] - X[None])
    largest = difference.max(axis=2)
    D = largest * ((difference / largest[..., None]) ** p).sum(axis=2) ** (1 / p)
    distances, rows = ordered(D, 5)
    found, which = ep.NearestNeighbors(p=p, algorithm=algorithm).fit(X).kneighbors(Q)
    assert_allclose(found, distances, rtol=1e-10)
    assert_array_equal(which, rows)
    zero, own = ep.NearestNeighbors(1, p=p, algorithm=algorithm).fit(X).kneighbors(X)
    assert_array_equal(zero, 0.0)
    assert_array_equal(own.ravel(), np.arange(len(X)))


@pytest.mark.parametrize("scale", [2.0**-1029, 2.0**-664, 2.0**531, 2.0**996])  # exact, so that ties stay ties
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("metric", "p"), [("minkowski", 2), ("minkowski", 3), ("minkowski", 1e3), ("cosine", 2)])
def test_values_whose_powers_leave_the_range(table, scale, sparse, metric, p):
    X, Q = (np.where(A > 0, np.round(16 * A), 0.0) for A in table)
    made = sp.csr_array if sparse else np.asarray
    distances, rows = ep.NearestNeighbors(metric=metric, p=p).fit(made(X)).kneighbors(made(Q))
    model = ep.NearestNeighbors(metric=metric, p=p).fit(made(X * scale))
    found, which = model.kneighbors(made(Q * scale))
    unit = 1.0 if metric == "cosine" else scale
    assert_allclose(found / unit, distances, rtol=1e-12 if scale > 2.0**-1000 else 1e-10, atol=1e-14)
    assert_array_equal(which, rows)
    inside = model.radius_neighbors(made(Q * scale), radius=float(np.median(found)), return_distance=False)
    assert sum(map(len, inside)) >= found.size / 2


def test_powers_below_one(table):
    X, Q = table
    D = (np.abs(Q[:, None] - X[None]) ** 0.5).sum(axis=2) ** 2
    with pytest.warns(UserWarning, match="not distance metrics"):
        model = ep.NearestNeighbors(p=0.5).fit(X)
    assert_allclose(model.kneighbors(Q)[0], ordered(D, 5)[0], rtol=1e-12)
    with pytest.raises(ParameterError, match="0 < p < 1"):
        ep.NearestNeighbors(p=0.5, algorithm="ball_tree").fit(X)


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_within_a_radius(table, algorithm, metric):
    X, Q = table
    D = cdist(Q, X, {"manhattan": "cityblock"}.get(metric, metric))
    model = ep.NearestNeighbors(algorithm=algorithm, metric=metric).fit(X)
    # exactly the distance of a row
    radius = np.take_along_axis(model.kneighbors(Q, 20)[0], np.full((len(Q), 1), 12), axis=1).ravel()
    distances, rows = model.radius_neighbors(Q, radius=radius)
    for d, near, row, reach in zip(distances, rows, D, radius, strict=True):
        assert_array_equal(near, np.flatnonzero(row <= reach * (1 + 1e-13)))
        assert_allclose(d, row[near], rtol=1e-12)
    graph = model.radius_neighbors_graph(Q, radius=1.5, mode="distance", sort_results=True)
    assert_allclose(graph.toarray(), np.where(D <= 1.5, D, 0.0), rtol=1e-12)
    alone = model.radius_neighbors(radius=0.0, return_distance=False)
    assert all(len(near) == 0 for near in alone)  # no row is its own neighbour


def test_sparse_rows_within_a_radius(table):
    X, Q = (np.where(A > 0.5, A, 0.0) for A in table)
    for metric in ("euclidean", "manhattan", "cosine"):
        dense = ep.NearestNeighbors(metric=metric, algorithm="brute").fit(X).radius_neighbors_graph(Q, 0.8, "distance")
        model = ep.NearestNeighbors(metric=metric).fit(sp.csr_array(X))
        assert_allclose(model.radius_neighbors_graph(sp.csr_array(Q), 0.8, "distance").toarray(), dense.toarray())


def test_functions_and_objects(table):
    X, Q = table
    distances, rows = ordered(cdist(Q, X, "canberra"), 3)

    def canberra(a, b, scale=1.0):
        assert a.ndim == b.ndim == 1
        return scale * np.sum(np.abs(a - b) / (np.abs(a) + np.abs(b)))

    found, which = ep.NearestNeighbors(3, metric=canberra, metric_params={"scale": 2.0}).fit(X).kneighbors(Q)
    assert_allclose(found, 2 * distances)
    assert_array_equal(which, rows)
    model = ep.NearestNeighbors(3, metric=DistanceMetric.get_metric("canberra")).fit(X)
    assert_allclose(model.kneighbors(Q)[0], distances)
    model = ep.NearestNeighbors(1, metric=lambda a, b: abs(a - b).sum()).fit(sp.csr_array(X[:20]))
    assert_array_equal(model.kneighbors(sp.csr_array(X[:20]))[1].ravel(), np.arange(20))
    with pytest.raises(ParameterError, match="kd_tree"):
        ep.NearestNeighbors(metric=canberra, algorithm="kd_tree").fit(X)


def test_missing_values_and_places_on_a_sphere(table):
    X = table[0].copy()
    X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    theirs = neighbors.NearestNeighbors(metric="nan_euclidean").fit(X[:150]).kneighbors(X[150:])
    ours = ep.NearestNeighbors(metric="nan_euclidean").fit(X[:150]).kneighbors(X[150:])
    assert_allclose(ours[0], theirs[0])
    nothing = np.array([[np.nan, 1.0], [1.0, np.nan], [2.0, 2.0]])
    found, _ = ep.NearestNeighbors(3, metric="nan_euclidean").fit(nothing).kneighbors(nothing)
    assert not np.isnan(found).any()
    with pytest.raises(DataError, match="infinity"):
        ep.NearestNeighbors(metric="nan_euclidean").fit([[np.inf, 1.0], [0.0, 0.0]])
    cities = np.radians([[48.86, 2.35], [52.52, 13.4], [40.71, -74.0]])  # Paris, Berlin, New York
    kilometres = 6371 * ep.NearestNeighbors(3, metric="haversine").fit(cities).kneighbors(cities[:1])[0]
    assert_allclose(kilometres, [[0, 878, 5837]], atol=5)
    with pytest.raises(DataError, match="2 dimensions"):
        ep.NearestNeighbors(metric="haversine").fit(table[0]).kneighbors(table[1])


def test_given_distances(table):
    X, Q = table
    y = (X[:, 0] > 0).astype(int)
    D, E = cdist(X, X), cdist(Q, X)
    for model in (ep.KNeighborsClassifier(4), ep.KNeighborsRegressor(4), ep.RadiusNeighborsRegressor(5.0)):
        expected = model.fit(X, y).predict(Q), model.predict(None)
        model.set_params(metric="precomputed").fit(D, y)
        assert_allclose(model.predict(E), expected[0])
        assert_allclose(model.predict(None), expected[1])
    graph = ep.KNeighborsTransformer(n_neighbors=9)
    chain = make_pipeline(graph, ep.KNeighborsRegressor(4, metric="precomputed")).fit(X, y)
    assert_allclose(chain.predict(Q), ep.KNeighborsRegressor(4).fit(X, y).predict(Q))
    with pytest.raises(DataError, match="Negative"):
        ep.NearestNeighbors(metric="precomputed").fit(-D)
    with pytest.raises(DataError, match="square"):
        ep.NearestNeighbors(metric="precomputed").fit(E)
    with pytest.raises(DataTypeError, match="explicit zeros"):
        ep.NearestNeighbors(metric="precomputed").fit(sp.dok_array(D))
    with pytest.raises(DataError, match="neighbors per samples"):
        ep.NearestNeighbors(50, metric="precomputed").fit(graph.fit_transform(X)).kneighbors()


def test_several_labels_at_once(tmp_path):
    X, y = load_iris(return_X_y=True)
    Y = np.column_stack([y, y > 0, -y])
    for ours, theirs in [
        (ep.KNeighborsClassifier(3), neighbors.KNeighborsClassifier(3)),
        (ep.RadiusNeighborsClassifier(0.53), neighbors.RadiusNeighborsClassifier(0.53)),
    ]:
        ours.fit(X, Y).save(tmp_path / "several.epi")
        loaded = ep.load(tmp_path / "several.epi")
        theirs.fit(X, Y)
        assert ours.outputs_2d_
        assert_array_equal(loaded.predict(X), theirs.predict(X))
        for a, b, c in zip(ours.classes_, theirs.classes_, loaded.classes_, strict=True):
            assert_array_equal(a, b)
            assert_array_equal(c, b)
        for a, b in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
            assert_allclose(a, b)


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: np.exp(-d)], ids=["uniform", "distance", "own"])
def test_radius_models_are_those_of_scikit_learn(table, weights):
    X, Q = table
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    ours = ep.RadiusNeighborsClassifier(3.0, weights=weights, outlier_label=1).fit(X, y)
    theirs = neighbors.RadiusNeighborsClassifier(3.0, weights="uniform", outlier_label=1).fit(X, y)
    kernel = {"uniform": np.ones_like, "distance": lambda d: 1 / d}.get(weights, weights)
    D = cdist(Q, X)
    W = np.where(D <= 3.0, kernel(D), 0.0)
    votes = np.stack([W[:, y == c].sum(axis=1) for c in range(3)], axis=1)
    assert_allclose(ours.predict_proba(Q), votes / votes.sum(axis=1, keepdims=True))
    assert ours.outlier_label_ == theirs.outlier_label_ == [1]
    model = ep.RadiusNeighborsRegressor(3.0, weights=weights).fit(X, np.column_stack([y, X[:, 1]]))
    assert_allclose(model.predict(Q), W @ np.column_stack([y, X[:, 1]]) / W.sum(axis=1, keepdims=True))


def test_queries_without_neighbours(table):
    X, _ = table
    y, far = np.array(["a", "b"] * 100), np.full((1, 6), 50.0)
    with pytest.raises(DataError, match="outlier_label"):
        ep.RadiusNeighborsClassifier().fit(X, y).predict(far)
    assert ep.RadiusNeighborsClassifier(outlier_label="b").fit(X, y).predict(far) == "b"
    with pytest.raises(ParameterTypeError, match="outlier_label"):
        ep.RadiusNeighborsClassifier(outlier_label=7).fit(X, (y == "a").astype(str).astype("U5")).predict(far)
    with pytest.warns(UserWarning, match="no neighbors"):
        assert np.isnan(ep.RadiusNeighborsRegressor().fit(X, X[:, 0]).predict(far)).all()


def test_infinite_weights_count_alone():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]

    def inverse(d):
        with np.errstate(divide="ignore"):
            return 1 / d

    for model in (ep.KNeighborsClassifier(3, weights=inverse), ep.RadiusNeighborsClassifier(5.0, weights=inverse)):
        assert_array_equal(model.fit(X, y).predict_proba([[0.0]]), [[1.0, 0.0]])


def test_attributes_in_scikit_learns_terms(table):
    X, _ = table
    for options in ({}, {"p": 1}, {"p": np.inf}, {"p": 3}, {"metric": "cosine"}):
        ours, theirs = (c(**options).fit(X) for c in (ep.NearestNeighbors, neighbors.NearestNeighbors))
        assert ours.effective_metric_ == theirs.effective_metric_
        assert ours.effective_metric_params_ == theirs.effective_metric_params_
    assert not hasattr(ep.NearestNeighbors(), "effective_metric_")
    again = ep.KNeighborsRegressor(1).fit(ep.NearestNeighbors().fit(X), X[:, 0])
    assert_array_equal(again.predict(X), X[:, 0])
    graph = neighbors.kneighbors_graph(ep.NearestNeighbors().fit(X), 5)  # scikit-learn's function, our search
    assert_array_equal(graph.toarray(), neighbors.kneighbors_graph(X, 5).toarray())


def test_a_row_of_equal_numbers_is_correlated_with_none():
    X = np.array([[1.0, 2.0, 3.0], [3.0, 3.0, 3.0], [3.0, 2.0, 1.0]])
    distances, _ = ep.NearestNeighbors(n_neighbors=3, metric="correlation").fit(X).kneighbors(X)
    assert_allclose(distances, [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.0]], atol=1e-12)
