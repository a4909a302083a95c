"""DBSCAN: the definition by brute force, scikit-learn's labels, metrics, weights, odd tables, threads."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import cluster as peer, datasets

import epicycle as ep
from epicycle import DBSCAN
from epicycle.cluster import dbscan
from epicycle.cluster.density._dense_regions import Density, Regions, checked
from epicycle.exceptions import DataError, ParameterError
from epicycle.spatial._metrics import resolve


def by_definition(D, eps, m, weight=None):
    """Core rows, and labels by flooding, from the matrix of distances."""
    n = len(D)
    near = eps >= D
    core = near @ (np.ones(n) if weight is None else weight) >= m
    label = np.full(n, -1)
    for number, seed in enumerate(iter(lambda: next((i for i in range(n) if core[i] and label[i] < 0), None), None)):
        waiting = [seed]
        while waiting:
            i = waiting.pop()
            if label[i] < 0:
                label[i] = number
                waiting += list(np.flatnonzero(near[i] & (label < 0))) if core[i] else []
    return core, label


@pytest.fixture(scope="module")
def rows():
    X, _ = datasets.make_blobs(600, centers=8, cluster_std=0.7, n_features=3, random_state=3)
    return np.vstack([X, np.random.default_rng(0).uniform(-12, 12, (150, 3))])


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 90),
    p=st.integers(1, 12),
    m=st.integers(1, 7),
    eps=st.sampled_from([0.3, 1.0, 2.5, 50.0]),
    kind=st.sampled_from(["normal", "grid", "repeated", "constant"]),
    scale=st.sampled_from([1e-200, 1e-9, 1.0, 1e200]),
    offset=st.sampled_from([0.0, 1e6]),
    weighted=st.booleans(),
    metric=st.sampled_from(["euclidean", "cityblock", "chebyshev", "minkowski"]),
    algorithm=st.sampled_from(["auto", "kd_tree", "brute"]),
    sparse=st.booleans(),
)
def test_any_table_follows_the_definition(seed, n, p, m, eps, kind, scale, offset, weighted, metric, algorithm, sparse):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if kind == "grid":
        X = np.round(2 * X)
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // 3), n)]
    if kind == "constant":
        X[:, ::2] = 1.0
    # Powers of two, so that the distances of the reference are not rounded again.
    scale = 2.0 ** np.round(np.log2(scale))
    X = X if sparse else X + offset
    weight = rng.integers(-1, 4, n) + 0.25 if weighted else None
    D = cdist(X, X, metric, **({"p": 3} if metric == "minkowski" else {}))
    if (np.abs(D - eps) < 1e-9).any() and kind != "grid":
        return  # decided by the last digit
    core, label = by_definition(D, eps, m, weight)
    table = sp.csr_array(scale * X) if sparse else scale * X
    model = DBSCAN(scale * eps, min_samples=m, metric=metric, p=3, algorithm=algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no tree of sparse rows
        model.fit(table, sample_weight=weight)
    if not (kind == "grid" and metric == "minkowski"):
        assert_array_equal(model.labels_, label)
        assert_array_equal(model.core_sample_indices_, np.flatnonzero(core))
    assert model.certificate_.holds


@pytest.mark.parametrize(
    "metric", ["euclidean", "l1", "cosine", "canberra", "precomputed", lambda a, b: abs(a - b).max()]
)
def test_scikit_learn_has_the_same_clusters(rows, metric):
    X = cdist(rows, rows) if metric == "precomputed" else rows
    eps = {"cosine": 0.002, "canberra": 0.3}.get(metric, 1.1)
    if callable(metric):
        X = rows[::4]
    ours, theirs = (cls(eps, min_samples=6, metric=metric).fit(X) for cls in (DBSCAN, peer.DBSCAN))
    assert ours.labels_.max() > 1
    assert -1 in ours.labels_
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_array_equal(ours.core_sample_indices_, theirs.core_sample_indices_)
    assert_array_equal(ours.components_, theirs.components_)
    assert_array_equal(dbscan(X, eps, min_samples=6, metric=metric)[1], theirs.labels_)


def test_a_graph_of_distances_that_is_not_symmetric():
    rng = np.random.default_rng(1)
    graph = sp.random_array((200, 200), density=0.02, rng=rng, format="csr")
    for weight in (None, rng.integers(0, 3, 200).astype(float)):
        ours, theirs = (
            cls(0.6, min_samples=3, metric="precomputed").fit(graph, sample_weight=weight)
            for cls in (DBSCAN, peer.DBSCAN)
        )
        assert_array_equal(ours.labels_, theirs.labels_)
        assert_array_equal(ours.core_sample_indices_, theirs.core_sample_indices_)
        assert ours.certificate_.holds
        assert "clusters" not in ours.certificate_.meaning


def test_all_kinds_of_tables_and_any_number_of_threads(rows, tmp_path):
    model = DBSCAN(1.1, min_samples=6).fit(rows)
    single = rows.astype(np.float32)
    for other in (
        DBSCAN(1.1, min_samples=6, n_jobs=3).fit(pd.DataFrame(rows, columns=list("abc"))),
        DBSCAN(1.1, min_samples=6, algorithm="brute", n_jobs=2).fit(rows),
        DBSCAN(1.1, min_samples=6).fit(sp.csr_array(rows)),
        DBSCAN(1.1, min_samples=6).fit(np.hstack([rows, np.zeros((len(rows), 40))])),
        DBSCAN(1.1, min_samples=6).fit(single),
    ):
        assert_array_equal(other.labels_, model.labels_)
    assert DBSCAN(1.1).fit(single).components_.dtype == np.float32
    model.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").labels_, model.labels_)
    assert model.history_["clusters"][-1] == model.labels_.max() + 1
    assert model.history_["noise"][-1] == (model.labels_ < 0).sum()


@given(seed=st.integers(0, 2**20), m=st.integers(1, 6))
def test_weights_are_repetitions_and_the_order_renames_clusters(seed, m):
    rng = np.random.default_rng(seed)
    X, times = rng.normal(size=(40, 2)), rng.integers(1, 4, 40)
    weighted = DBSCAN(0.4, min_samples=m).fit(X, sample_weight=times)
    repeated = DBSCAN(0.4, min_samples=m).fit(np.repeat(X, times, axis=0))
    assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    mixed = rng.permutation(40)
    other = DBSCAN(0.4, min_samples=m).fit(X[mixed], sample_weight=times[mixed])
    assert_array_equal(np.sort(mixed[other.core_sample_indices_]), weighted.core_sample_indices_)
    assert_array_equal(other.labels_ < 0, weighted.labels_[mixed] < 0)
    core = weighted.core_sample_indices_
    names = {(a, b) for a, b in zip(weighted.labels_[core], other.labels_[np.argsort(mixed)][core], strict=True)}
    assert len(names) == weighted.labels_.max() + 1


def test_the_certificate_sees_wrong_clusters(rows):
    model = DBSCAN(1.1, min_samples=6).fit(rows)
    density, metric = Density(1.1, 6.0, None), resolve(2, "euclidean", None)
    core = np.isin(np.arange(len(rows)), model.core_sample_indices_)
    assert checked(rows, metric, density, Regions(core, model.labels_)).holds
    assert not checked(rows, metric, density, Regions(~core, model.labels_)).holds
    assert not checked(rows, metric, density, Regions(core, np.arange(len(rows)))).holds
    assert not checked(rows, metric, density, Regions(core, np.where(core, model.labels_, 0))).holds


def test_many_rows_in_little_memory():
    """All rows are neighbours of all others: lists of them would take 80 GB."""
    X = np.random.default_rng(0).normal(size=(100_000, 3)) * 1e-3
    model = DBSCAN(1.0, min_samples=10).fit(X)
    assert (model.labels_ == 0).all()
    assert len(model.core_sample_indices_) == len(X)


def test_what_is_refused(rows):
    with pytest.raises(ParameterError, match="eps=0"):
        DBSCAN(0).fit(rows)
    with pytest.raises(DataError, match="must be square"):
        DBSCAN(metric="precomputed").fit(abs(rows))
    with pytest.raises(DataError, match="sample_weight"):
        DBSCAN().fit(rows, sample_weight=[1.0])
    with pytest.raises(DataError, match="non-zero"):
        DBSCAN().fit(rows, sample_weight=np.zeros(len(rows)))
