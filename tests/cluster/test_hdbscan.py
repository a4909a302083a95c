"""HDBSCAN: scikit-learn's labels, the spanning tree by brute force, odd tables, metrics, centres, cuts, certificate."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, reject, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import is_valid_linkage, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn import cluster as peer, datasets

import epicycle as ep
from epicycle import HDBSCAN
from epicycle.cluster.density import _hierarchy
from epicycle.cluster.density._hierarchy import Dendrogram, Reachability, checked
from epicycle.exceptions import DataError, ParameterError
from epicycle.spatial._metrics import resolve


def mutual(X, k, alpha=1.0, metric="euclidean"):
    """(core distances, mutual reachability distances) from the definition."""
    D = cdist(X, X, metric)
    core = np.sort(D, axis=1)[:, k - 1]
    reach = np.maximum(np.maximum(D / alpha, core), core[:, None])
    np.fill_diagonal(reach, 0)
    return core, reach


def heights(X, k, alpha=1.0, metric="euclidean"):
    """Heights of the merges of single linkage, by SciPy."""
    return linkage(squareform(mutual(X, k, alpha, metric)[1], checks=False), "single")[:, 2]


@pytest.fixture(scope="module")
def rows():
    X, _ = datasets.make_blobs(400, centers=5, cluster_std=[0.4, 0.8, 1.5, 0.6, 0.3], random_state=1)
    return np.vstack([X, np.random.default_rng(0).uniform(-12, 12, (60, 2))])


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(8, 120),
    p=st.integers(1, 4),
    size=st.integers(2, 8),
    k=st.integers(1, 8),
    method=st.sampled_from(["eom", "leaf"]),
    single=st.booleans(),
    largest=st.sampled_from([None, 20]),
    kind=st.sampled_from(["clusters", "normal", "grid"]),
    algorithm=st.sampled_from(["auto", "kd_tree", "brute"]),
    metric=st.sampled_from(["euclidean", "manhattan"]),
)
def test_scikit_learn_has_the_same_clusters(seed, n, p, size, k, method, single, largest, kind, algorithm, metric):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if kind == "clusters":
        X += 5 * rng.integers(0, 3, (n, 1))
    if kind == "grid":
        X = np.round(3 * X)
    options = {
        "min_cluster_size": size,
        "min_samples": k,
        "cluster_selection_method": method,
        "max_cluster_size": largest,
        "allow_single_cluster": single,
        "algorithm": algorithm,
        "metric": metric,
    }
    ours = HDBSCAN(**options).fit(X)
    try:
        theirs = peer.HDBSCAN(**options, copy=True).fit(X)
    except KeyError:  # as its labels of a single cluster that is larger than max_cluster_size
        assert single
        assert largest == 20 < n
        reject()
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_allclose(ours.probabilities_, theirs.probabilities_, rtol=1e-7)  # its brute force cancels digits
    cut = float(np.median(ours.linkage_[:, 2])) * (1 + 1e-9)
    assert_array_equal(ours.dbscan_clustering(cut, 3), theirs.dbscan_clustering(cut, 3))
    assert ours.certificate_.holds


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev"])
@pytest.mark.parametrize("n", [40, 33, 700])
def test_the_tree_is_a_shortest_one(monkeypatch, n, metric):
    monkeypatch.setattr(_hierarchy, "_PRIM_ROWS", 0)  # a tree of boxes for any number of rows
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    X[: n // 4] = X[n // 2 : n // 2 + n // 4]  # equal rows
    for alpha in (1.0, 1.5):
        first, second = (HDBSCAN(metric=metric, alpha=alpha, n_jobs=jobs).fit(X) for jobs in (1, 3))
        assert is_valid_linkage(first.linkage_)
        assert_allclose(first.linkage_[:, 2], heights(X, 5, alpha, metric), rtol=1e-12, atol=1e-300)
        assert_array_equal(first.linkage_, second.linkage_)
        assert first.certificate_.holds


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(5, 60),
    kind=st.sampled_from(["equal", "repeated", "constant", "normal"]),
    scale=st.sampled_from([1e-200, 1e-9, 1.0, 1e200]),
    offset=st.sampled_from([0.0, 1e8]),
)
def test_any_table_has_labels(seed, n, kind, scale, offset):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if kind == "equal":
        X[:] = 1.0
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // 4), n)]
    if kind == "constant":
        X[:, 1] = 3.0
    model = HDBSCAN(min_cluster_size=3, allow_single_cluster=True).fit(scale * (X + offset))
    assert set(model.labels_) <= set(range(-1, n))
    assert ((model.probabilities_ >= 0) & (model.probabilities_ <= 1)).all()
    assert (model.probabilities_[model.labels_ < 0] == 0).all()
    assert (np.diff(model.linkage_[:, 2]) >= 0).all()
    assert model.certificate_.holds
    if offset == 0 and kind in ("normal", "constant"):
        other = HDBSCAN(min_cluster_size=3, allow_single_cluster=True).fit(X)
        assert_array_equal(model.labels_, other.labels_)


def test_rows_that_are_not_finite_stand_apart(rows):
    X = rows.copy()
    X[3, 0], X[5, 1], X[7] = np.inf, np.nan, [np.nan, np.inf]
    ours, theirs = HDBSCAN().fit(X), peer.HDBSCAN(copy=True).fit(X)
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_array_equal(ours.labels_[[3, 5, 7]], [-2, -3, -3])
    assert_allclose(ours.probabilities_, theirs.probabilities_)
    assert_array_equal(ours.dbscan_clustering(0.5)[[3, 5, 7]], [-2, -3, -3])


@pytest.mark.parametrize("metric", ["cosine", "canberra", "precomputed"])
def test_other_distances(rows, metric):
    X = cdist(rows, rows) if metric == "precomputed" else rows
    ours, theirs = HDBSCAN(metric=metric).fit(X), peer.HDBSCAN(metric=metric, copy=True).fit(X)
    assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.certificate_.holds


def test_a_graph_of_distances(rows):
    D = cdist(rows, rows)
    near = np.argsort(D, axis=1)[:, :25]
    graph = np.zeros_like(D)
    np.put_along_axis(graph, near, np.take_along_axis(D, near, axis=1), axis=1)
    graph = sp.csr_array(np.maximum(graph, graph.T))
    options = {"metric": "precomputed", "min_samples": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = peer.HDBSCAN(**options, copy=True).fit(graph)
        except ValueError:  # not connected
            with pytest.raises(DataError, match="connected components"):
                HDBSCAN(**options).fit(graph)
            return
    assert_array_equal(HDBSCAN(**options).fit(graph).labels_, theirs.labels_)


def test_all_kinds_of_tables(rows, tmp_path):
    model = HDBSCAN(store_centers="both").fit(rows)
    assert len(model.centroids_) == model.labels_.max() + 1 >= 4
    theirs = peer.HDBSCAN(store_centers="both", copy=True).fit(rows)
    assert_allclose(model.centroids_, theirs.centroids_)
    assert_allclose(model.medoids_, theirs.medoids_)
    single = rows.astype(np.float32)
    exact = HDBSCAN().fit(single.astype(np.float64))
    assert_array_equal(HDBSCAN().fit(single).labels_, exact.labels_)
    for table in (pd.DataFrame(rows, columns=["a", "b"]), sp.csr_array(rows)):
        other = HDBSCAN(store_centers="both").fit(table)
        assert_array_equal(other.labels_, model.labels_)
        assert_allclose(other.medoids_, model.medoids_)
    wide = HDBSCAN().fit(np.hstack([rows, np.zeros((len(rows), 30))]))
    assert_array_equal(wide.labels_, model.labels_)
    model.save(tmp_path / "model.epi")
    loaded = ep.load(tmp_path / "model.epi")
    assert_array_equal(loaded.dbscan_clustering(0.7), model.dbscan_clustering(0.7))
    assert model.history_["clusters"][-1] == model.labels_.max() + 1


def test_epsilon_joins_clusters(rows):
    counts = [HDBSCAN(cluster_selection_epsilon=e).fit(rows).labels_.max() + 1 for e in (0.0, 1.0, 3.0)]
    assert counts[0] >= counts[1] >= counts[2] >= 1
    assert counts[0] > counts[2]
    one = HDBSCAN(cluster_selection_epsilon=50.0, allow_single_cluster=True).fit(rows)
    assert set(one.labels_) <= {-1, 0}


def test_the_certificate_sees_a_tree_that_is_not_shortest(rows):
    metric, reach = resolve(2, "euclidean", None), Reachability(5, 1.0)
    model = HDBSCAN().fit(rows)
    core, _ = mutual(rows, 5)
    tree = Dendrogram.of_linkage(model.linkage_)
    assert checked(rows, metric, reach, tree, core).holds
    chain = np.arange(len(rows) - 1)  # each row linked to the next one
    lengths = mutual(rows, 5)[1][chain, chain + 1]
    assert not checked(rows, metric, reach, Dendrogram.of_edges(chain, chain + 1, lengths), core).holds
    assert not checked(rows, metric, reach, tree, 2 * core).holds


def test_what_is_refused(rows):
    with pytest.raises(DataError, match="more than one sample"):
        HDBSCAN().fit(rows[:1])
    with pytest.raises(DataError, match=r"min_samples \(9\) must be at most the number of samples"):
        HDBSCAN(min_samples=9).fit(rows[:8])
    with pytest.raises(ParameterError, match="Cannot store centers"):
        HDBSCAN(metric="precomputed", store_centers="medoid").fit(cdist(rows, rows))
    with pytest.raises(DataError, match="asymmetric"):
        HDBSCAN(metric="precomputed").fit(np.abs(rows[:2]))
    with pytest.raises(ParameterError, match="not a valid metric for a KDTree"):
        HDBSCAN(metric="cosine", algorithm="kd_tree").fit(rows)
