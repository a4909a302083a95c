"""OPTICS: scikit-learn's order and clusters, the definition by brute force, odd tables, metrics, certificate, plot."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import cluster as peer, datasets

import epicycle as ep
from epicycle import DBSCAN, OPTICS, plot
from epicycle.cluster import cluster_optics_dbscan, cluster_optics_xi, compute_optics_graph
from epicycle.cluster.density._reachability import Reached, checked
from epicycle.exceptions import DataError, ParameterError
from epicycle.spatial._metrics import resolve


def by_definition(D, k, radius=np.inf):
    """(order, core distances, reachability) from the matrix of distances."""
    n = len(D)
    core = np.sort(D, axis=1)[:, k - 1]
    core[core > radius] = np.inf
    reach, order = np.full(n, np.inf), []
    while len(order) < n:
        left = [j for j in range(n) if j not in order]
        i = min(left, key=lambda j: (reach[j], j))
        order.append(i)
        for j in left:
            if j != i and D[i, j] <= radius and np.isfinite(core[i]):
                reach[j] = min(reach[j], max(D[i, j], core[i]))
    return np.array(order), core, reach


@pytest.fixture(scope="module")
def rows():
    X, _ = datasets.make_blobs(250, centers=4, cluster_std=[0.4, 0.8, 1.2, 0.3], random_state=1)
    return np.vstack([X, np.random.default_rng(0).uniform(-12, 12, (40, 2))])


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(8, 70),
    p=st.integers(1, 4),
    k=st.integers(2, 7),
    radius=st.sampled_from([np.inf, 1.0, 3.0]),
    method=st.sampled_from(["xi", "dbscan"]),
    xi=st.sampled_from([0.01, 0.05, 0.3]),
    size=st.sampled_from([None, 4, 0.2]),
    correct=st.booleans(),
    metric=st.sampled_from(["minkowski", "manhattan", "chebyshev"]),
    grid=st.booleans(),
)
def test_scikit_learn_has_the_same_order_and_clusters(seed, n, p, k, radius, method, xi, size, correct, metric, grid):
    rng = np.random.default_rng(seed)
    X = np.round(3 * rng.normal(size=(n, p))) if grid else rng.normal(size=(n, p)) + 4 * rng.integers(0, 3, (n, 1))
    options = {
        "min_samples": k,
        "max_eps": radius,
        "cluster_method": method,
        "xi": xi,
        "min_cluster_size": size,
        "predecessor_correction": correct,
        "metric": metric,
        "algorithm": "kd_tree",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is reached
        theirs, ours = peer.OPTICS(**options).fit(X), OPTICS(**options).fit(X)
    assert_array_equal(ours.ordering_, theirs.ordering_)
    # Of rows near 1 that are 1e-6 apart the rounding is 1e-10 of their distance.
    assert_allclose(ours.reachability_, theirs.reachability_, rtol=1e-12, atol=1e-14)
    assert_allclose(ours.core_distances_, theirs.core_distances_, rtol=1e-12, atol=1e-14)
    assert_array_equal(ours.predecessor_, theirs.predecessor_)
    assert_array_equal(ours.labels_, theirs.labels_)
    if method == "xi":
        assert_array_equal(ours.cluster_hierarchy_, theirs.cluster_hierarchy_)
    assert ours.certificate_.holds


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(2, 40),
    kind=st.sampled_from(["equal", "repeated", "constant", "normal"]),
    scale=st.sampled_from([1e-200, 1e-9, 1.0, 1e200]),
    offset=st.sampled_from([0.0, 1e8]),
    radius=st.sampled_from([np.inf, 1.5]),
    algorithm=st.sampled_from(["auto", "brute", "kd_tree"]),
)
def test_any_table_follows_the_definition(seed, n, kind, scale, offset, radius, algorithm):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if kind == "equal":
        X[:] = 1.0
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // 4), n)]
    if kind == "constant":
        X[:, 1] = 3.0
    X, scale = X + offset, 2.0 ** np.round(np.log2(scale))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is reached
        model = OPTICS(min_samples=2, max_eps=scale * radius, algorithm=algorithm).fit(scale * X)
    order, core, reach = by_definition(cdist(X, X), 2, radius)
    assert_array_equal(model.ordering_, order)
    assert_allclose(model.reachability_ / scale, reach, rtol=1e-12)
    assert_allclose(model.core_distances_ / scale, core, rtol=1e-12)
    assert set(model.labels_) <= set(range(-1, n))
    assert model.certificate_.holds


@pytest.mark.parametrize("metric", ["cosine", "canberra", "precomputed", "jaccard"])
def test_other_distances(rows, metric):
    X = {"precomputed": cdist(rows, rows), "jaccard": rows[:60] > 0}.get(metric, rows)
    model = OPTICS(metric=metric).fit(X)
    D = X if metric == "precomputed" else cdist(X, X, metric)
    _, core, _ = by_definition(D, 5)
    assert_allclose(model.core_distances_, core, atol=1e-12)
    assert model.certificate_.holds
    assert_array_equal(np.sort(model.ordering_), np.arange(len(X)))


def test_a_graph_of_distances(rows):
    X = rows[:250]
    D = cdist(X, X)
    dense = OPTICS(max_eps=3.0, min_samples=3, metric="precomputed").fit(D)
    graph = sp.csr_array(np.where(D <= 3.0, D, 0.0))
    sparse = OPTICS(max_eps=3.0, min_samples=3, metric="precomputed").fit(graph)
    assert_array_equal(sparse.ordering_, dense.ordering_)
    assert_array_equal(sparse.labels_, dense.labels_)
    assert sparse.certificate_.holds


def test_all_kinds_of_tables(rows, tmp_path):
    model = OPTICS(max_eps=4.0).fit(rows)
    for other in (
        OPTICS(max_eps=4.0, n_jobs=3).fit(pd.DataFrame(rows, columns=["a", "b"])),
        OPTICS(max_eps=4.0).fit(sp.csr_array(rows)),
        OPTICS(max_eps=4.0, algorithm="brute").fit(rows),
        OPTICS(max_eps=4.0).fit(np.hstack([rows, np.zeros((len(rows), 30))])),
        OPTICS(max_eps=4.0, memory=str(tmp_path)).fit(rows),
        OPTICS(max_eps=4.0, memory=str(tmp_path)).fit(rows),
    ):
        assert_array_equal(other.ordering_, model.ordering_)
        assert_allclose(other.reachability_, model.reachability_)
    single = rows.astype(np.float32)
    assert_array_equal(OPTICS().fit(single).ordering_, OPTICS().fit(single.astype(float)).ordering_)
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").reachability_, model.reachability_)
    assert model.history_["clusters"][-1] == model.labels_.max() + 1
    found = compute_optics_graph(
        rows,
        min_samples=5,
        max_eps=4.0,
        metric="euclidean",
        p=2,
        metric_params=None,
        algorithm="auto",
        leaf_size=30,
        n_jobs=None,
    )
    assert_array_equal(found[0], model.ordering_)


def test_one_radius_has_the_core_rows_of_dbscan(rows):
    model = OPTICS(min_samples=6).fit(rows)
    labels = cluster_optics_dbscan(
        reachability=model.reachability_, core_distances=model.core_distances_, ordering=model.ordering_, eps=1.0
    )
    dense = DBSCAN(1.0, min_samples=6).fit(rows)
    core = dense.core_sample_indices_
    pairs = set(zip(labels[core].tolist(), dense.labels_[core].tolist(), strict=True))
    assert len(pairs) == dense.labels_.max() + 1
    assert -1 not in labels[core]


def test_the_certificate_sees_wrong_distances(rows):
    model, metric = OPTICS().fit(rows), resolve(2, "euclidean", None)
    found = [model.ordering_, model.core_distances_, model.reachability_, model.predecessor_]
    assert checked(rows, metric, 5, np.inf, Reached(*found)).holds
    for which, wrong in ((1, 2 * found[1]), (2, 2 * found[2]), (0, found[0][::-1])):
        changed = list(found)
        changed[which] = wrong
        assert not checked(rows, metric, 5, np.inf, Reached(*changed)).holds


def test_the_plot_shows_the_order(rows):
    model = OPTICS().fit(rows)
    drawn = plot.reachability(model.reachability_, model.ordering_, model.labels_, eps=1.0)
    assert_array_equal(drawn.data["reachability"], model.reachability_[model.ordering_])
    assert_array_equal(drawn.data["label"], model.labels_[model.ordering_])
    assert drawn.numbers == {"rows": len(rows), "unreached": 1, "clusters": model.labels_.max() + 1}
    with pytest.raises(DataError, match="ordering"):
        plot.reachability(model.reachability_, model.ordering_[1:])
    with pytest.raises(DataError, match="labels"):
        plot.reachability(model.reachability_, model.ordering_, model.labels_[1:])


def test_what_is_refused(rows):
    with pytest.raises(ParameterError, match="min_samples must be no greater"):
        OPTICS(min_samples=9).fit(rows[:8])
    with pytest.raises(DataError, match="n_samples = 1"):
        OPTICS(min_samples=0.5).fit(rows[:1])
    with pytest.raises(ParameterError, match="min_samples=1"):
        OPTICS(min_samples=1).fit(rows)
    with pytest.raises(ParameterError, match="Specify an epsilon smaller than 1"):
        OPTICS(max_eps=1, eps=2, cluster_method="dbscan").fit(rows)
    with pytest.warns(UserWarning, match="All reachability values are inf"):
        OPTICS(max_eps=1e-9).fit(rows)
    with pytest.raises(ParameterError, match="xi=2"):
        cluster_optics_xi(
            reachability=np.ones(4), predecessor=-np.ones(4, int), ordering=np.arange(4), min_samples=2, xi=2
        )
