"""Hierarchical clustering: SciPy's trees with ties, definitions by brute force, graphs, weights, cuts, bad input."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform
from sklearn import cluster as peer, datasets
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.neighbors import kneighbors_graph

import epicycle as ep
from epicycle import AgglomerativeClustering, FeatureAgglomeration, linkage_tree, ward_tree
from epicycle.cluster.hierarchy import _evidence, _linkage
from epicycle.exceptions import ConvergenceWarning, DataError, DataTypeError, ParameterError

LINKAGES = ["ward", "complete", "average", "single", "weighted", "centroid", "median"]
REDUCIBLE = LINKAGES[:5]


def tied(seed, n=None, p=None):
    """Rows on a small grid: many equal distances, and duplicates."""
    rng = np.random.default_rng(seed)
    n, p = n or int(rng.integers(2, 120)), p or int(rng.integers(1, 4))
    return rng.integers(0, 4, (n, p)).astype(float)


def above_zero(Z):
    return Z[Z[:, 2] > 1e-9, 2]


@pytest.mark.parametrize("linkage", LINKAGES)
def test_the_tree_is_scipys_on_200_problems_with_ties(linkage):
    for seed in range(200):
        X = tied(seed) if seed % 2 else np.random.default_rng(seed).normal(size=(20 + seed, 3))
        Z = _linkage.tree_of(_linkage.problem_of(X, "euclidean", None, linkage, None, None), "auto", None, 1).Z
        with np.errstate(invalid="ignore"):  # SciPy takes roots of small negative numbers
            expected = hierarchy.linkage(X, linkage)
        assert_array_equal(Z, expected, err_msg=f"seed {seed}")


@pytest.mark.parametrize("linkage", ["ward", "centroid", "median"])
def test_means_give_the_tree_of_all_distances(linkage):
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(30 + 40 * seed, 1 + seed % 5)) * 10.0**seed + 3
        held = AgglomerativeClustering(linkage=linkage, algorithm="matrix").fit(X)
        computed = AgglomerativeClustering(linkage=linkage, algorithm="vectors").fit(X)
        assert_array_equal(computed.children_, held.children_)
        assert_allclose(computed.linkage_, held.linkage_, rtol=1e-9, atol=1e-9 * 10.0**seed)
    # With ties there is more than one tree; each obeys the definition.
    for seed in range(10):
        model = AgglomerativeClustering(linkage=linkage, algorithm="vectors").fit(tied(seed, 60))
        assert model.certificate_.holds


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_single_linkage_by_a_kd_tree(metric, monkeypatch):
    monkeypatch.setattr(_linkage, "_TREE_ROWS", 1)
    for seed in range(20):
        X = tied(seed) if seed % 2 else np.random.default_rng(seed).normal(size=(150, 1 + seed % 4))
        model = AgglomerativeClustering(1, linkage="single", metric=metric).fit(X)
        expected = hierarchy.linkage(X, "single", "cityblock" if metric == "manhattan" else metric)
        assert_allclose(model.linkage_[:, 2], expected[:, 2], rtol=1e-14)
        for height in np.quantile(expected[:, 2], [0.2, 0.6, 0.9]):  # whatever the order of equal heights
            theirs = hierarchy.fcluster(expected, height, "distance")
            ours = model.cut(distance_threshold=height * (1 + 1e-12) + 1e-300)
            assert adjusted_rand_score(ours, theirs) == 1
        assert model.certificate_.holds


@settings(max_examples=500)
@given(
    seed=st.integers(0, 2**20),
    n=st.integers(2, 40),
    p=st.integers(1, 4),
    ties=st.booleans(),
    constant=st.booleans(),
    scale=st.sampled_from([1e-200, 1e-12, 1.0, 1e6, 1e200]),
    offset=st.sampled_from([0.0, 1e5]),
    linkage=st.sampled_from(LINKAGES),
    algorithm=st.sampled_from(["auto", "matrix", "vectors"]),
)
def test_any_rows_have_a_tree_that_obeys_the_definition(seed, n, p, ties, constant, scale, offset, linkage, algorithm):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, p)).astype(float) if ties else rng.normal(size=(n, p))
    X[:, 0] = 1.0 if constant else X[:, 0]
    X = scale * (X + offset)
    if algorithm == "vectors" and linkage in ("complete", "average", "weighted"):
        algorithm = "auto"
    k = int(rng.integers(1, n + 1))
    model = AgglomerativeClustering(k, linkage=linkage, algorithm=algorithm).fit(X)
    assert hierarchy.is_valid_linkage(model.linkage_)
    assert model.certificate_.holds
    assert model.n_clusters_ == k == len(set(model.labels_))
    if linkage in REDUCIBLE:
        assert (np.diff(model.linkage_[:, 2]) >= 0).all()
    with np.errstate(over="ignore"):  # units play no part
        doubled = AgglomerativeClustering(k, linkage=linkage, algorithm=algorithm).fit(2.0 * X)
    assert_array_equal(doubled.labels_, model.labels_)
    if not ties and not (constant and p == 1):
        order = rng.permutation(n)
        other = AgglomerativeClustering(k, linkage=linkage, algorithm=algorithm).fit(X[order])
        assert adjusted_rand_score(other.labels_, model.labels_[order]) == 1


@pytest.mark.parametrize("algorithm", ["matrix", "vectors"])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_weights_are_repetitions(linkage, algorithm):
    if algorithm == "vectors" and linkage in ("complete", "average", "weighted"):
        return
    rng = np.random.default_rng(0)
    X, times = rng.normal(size=(40, 3)), rng.integers(0, 4, 40)
    weighted = AgglomerativeClustering(6, linkage=linkage, algorithm=algorithm).fit(X, sample_weight=times)
    repeated = AgglomerativeClustering(6, linkage=linkage, algorithm=algorithm).fit(np.repeat(X, times, axis=0))
    assert weighted.certificate_.holds
    assert_allclose(above_zero(weighted.linkage_), above_zero(repeated.linkage_), rtol=1e-7)
    assert adjusted_rand_score(np.repeat(weighted.labels_, times), repeated.labels_) == 1
    assert_array_equal(weighted.labels_ == -1, times == 0)
    assert weighted.n_leaves_ == (times > 0).sum()


@pytest.mark.parametrize("linkage", LINKAGES)
def test_the_certificate_finds_a_wrong_tree(linkage):
    X = np.random.default_rng(1).normal(size=(60, 2))
    problem = _linkage.problem_of(X, "euclidean", None, linkage, None, None)
    tree = _linkage.tree_of(problem, "matrix", None, 1)
    assert _evidence.certificate_of(problem, tree).holds
    Z = tree.Z.copy()
    Z[:, 2] *= np.linspace(1, 1.01, len(Z))
    assert not _evidence.certificate_of(problem, _linkage.Tree(Z, 60)).holds
    # A tree of other rows: heights are right of no merge.
    other = _linkage.tree_of(
        _linkage.problem_of(X[::-1].copy(), "euclidean", None, linkage, None, None), "matrix", None, 1
    )
    assert not _evidence.certificate_of(problem, other).holds


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "cosine", "canberra", "minkowski"])
@pytest.mark.parametrize("linkage", ["complete", "average", "single"])
def test_metrics(metric, linkage):
    X = np.random.default_rng(2).uniform(1, 2, size=(50, 4))
    params = {"p": 3.0} if metric == "minkowski" else None
    expected = hierarchy.linkage(pdist(X, "cityblock" if metric == "manhattan" else metric, **(params or {})), linkage)
    model = AgglomerativeClustering(4, metric=metric, linkage=linkage, metric_params=params).fit(X)
    assert_allclose(model.linkage_, expected, rtol=1e-7, atol=1e-12)
    assert model.certificate_.holds
    if linkage == "single":
        computed = AgglomerativeClustering(
            4, metric=metric, linkage=linkage, metric_params=params, algorithm="vectors"
        ).fit(X)
        assert_allclose(computed.linkage_[:, 2], expected[:, 2], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("linkage", LINKAGES)
def test_given_distances_functions_sparse_rows_frames_and_float32(linkage):
    X = np.random.default_rng(3).normal(size=(45, 3)).astype(np.float32)
    D = squareform(pdist(X.astype(float)))
    expected = hierarchy.linkage(X.astype(float), linkage)
    same = {"linkage": linkage, "n_clusters": 4}
    assert_array_equal(AgglomerativeClustering(**same).fit(X).linkage_, expected)
    assert_array_equal(AgglomerativeClustering(**same).fit(pd.DataFrame(X)).linkage_, expected)
    for distances in (D, squareform(D)):
        model = AgglomerativeClustering(metric="precomputed", **same).fit(distances)
        assert_array_equal(model.linkage_, expected)
        assert model.certificate_.holds
    sparse = AgglomerativeClustering(**same).fit(sp.csr_array(np.where(X > 0, X, 0)))
    assert_allclose(sparse.linkage_, hierarchy.linkage(np.where(X > 0, X, 0).astype(float), linkage), atol=1e-6)
    if linkage not in _linkage.MEAN_LINKAGES:
        by_name = AgglomerativeClustering(metric="manhattan", **same).fit(X)
        for function in (manhattan_distances, lambda a, b: np.abs(a - b).sum()):
            assert_allclose(
                AgglomerativeClustering(metric=function, **same).fit(X).linkage_, by_name.linkage_, rtol=1e-5
            )


def test_threads_change_no_bit():
    X = np.random.default_rng(4).normal(size=(700, 6))
    for linkage, algorithm in (("average", "matrix"), ("ward", "vectors"), ("centroid", "vectors"), ("single", "auto")):
        one, two, four = (
            AgglomerativeClustering(linkage=linkage, algorithm=algorithm, n_jobs=jobs).fit(X).linkage_
            for jobs in (1, 2, 4)
        )
        assert_array_equal(one, two)
        assert_array_equal(one, four)


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
def test_graphs_are_scikit_learns(linkage):
    X = np.random.default_rng(5).normal(size=(150, 3))
    for k in (1, 3, 8):
        graph = kneighbors_graph(X, k, include_self=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # components are joined
            ours = AgglomerativeClustering(7, linkage=linkage, connectivity=graph, compute_distances=True).fit(X)
            theirs = peer.AgglomerativeClustering(7, linkage=linkage, connectivity=graph, compute_distances=True).fit(X)
        assert_allclose(ours.distances_, theirs.distances_, rtol=1e-9)
        assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1
        assert ours.n_connected_components_ == theirs.n_connected_components_
        assert ours.certificate_.holds
    full = AgglomerativeClustering(7, linkage=linkage, connectivity=np.ones((150, 150))).fit(X)
    assert_allclose(full.linkage_, hierarchy.linkage(X, linkage), rtol=1e-9, atol=1e-12)
    early = AgglomerativeClustering(7, linkage=linkage, connectivity=graph, compute_full_tree=False).fit(X)
    assert len(early.children_) == 150 - 7
    assert adjusted_rand_score(early.labels_, ours.labels_) == 1
    by_function = AgglomerativeClustering(
        7, linkage=linkage, connectivity=lambda rows: kneighbors_graph(rows, 8, include_self=False)
    ).fit(X)
    assert_array_equal(by_function.labels_, ours.labels_)
    weighted = AgglomerativeClustering(7, linkage=linkage, connectivity=graph).fit(
        X, sample_weight=np.where(np.arange(150) < 140, 1.5, 0.0)
    )
    assert weighted.certificate_.holds
    assert weighted.n_leaves_ == 140


def test_cuts_by_number_height_and_persistence():
    X, y = datasets.make_blobs(90, centers=[[0, 0], [20, 0], [0, 20]], cluster_std=1.0, random_state=0)
    model = AgglomerativeClustering("persistence").fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(model.labels_, y) == 1
    for k in (1, 2, 10, 90):
        expected = hierarchy.fcluster(model.linkage_, k, "maxclust")
        assert adjusted_rand_score(model.cut(k), expected) == 1
        assert_array_equal(model.cut(k), peer.AgglomerativeClustering(k).fit(X).labels_)
    uniform = 5 * np.random.default_rng(0).random((60, 3))
    assert (np.diff(AgglomerativeClustering(linkage="centroid").fit(uniform).linkage_[:, 2]) < 0).any()
    for linkage in LINKAGES:  # also where heights fall
        tree = AgglomerativeClustering(linkage=linkage).fit(uniform)
        for height in (0.3, 1.0, 2.5):
            expected = hierarchy.fcluster(tree.linkage_, np.nextafter(height, 0), "distance")
            assert adjusted_rand_score(tree.cut(distance_threshold=height), expected) == 1
    assert AgglomerativeClustering("persistence").fit(np.ones((4, 2))).n_clusters_ == 1
    high = AgglomerativeClustering(None, distance_threshold=5.0).fit(X)
    assert high.n_clusters_ == (high.distances_ >= 5).sum() + 1
    with pytest.raises(ParameterError, match="Exactly one of"):
        model.cut(3, distance_threshold=1.0)


def test_trees_are_kept_and_models_saved(tmp_path):
    X = np.random.default_rng(6).normal(size=(50, 2))
    first = AgglomerativeClustering(3, memory=str(tmp_path / "kept")).fit(X)
    second = AgglomerativeClustering(5, memory=str(tmp_path / "kept")).fit(X)
    assert_array_equal(first.linkage_, second.linkage_)
    assert first.history_["merges"].tolist() == [49]
    first.set_params(memory=None).save(tmp_path / "model.epi")
    loaded = ep.io.load(tmp_path / "model.epi")
    assert_array_equal(loaded.labels_, first.labels_)
    assert_array_equal(loaded.cut(4), first.cut(4))
    assert_array_equal(first.fit_predict(X), first.labels_)


def test_functions_return_what_scikit_learns_do():
    X = np.random.default_rng(7).normal(size=(30, 2))
    graph = kneighbors_graph(X, 6, include_self=False)
    for ours, theirs in (
        (ward_tree(X, return_distance=True), peer.ward_tree(X, return_distance=True)),
        (ward_tree(X, connectivity=graph), peer.ward_tree(X, connectivity=graph)),
        (ward_tree(X, connectivity=graph, n_clusters=5), peer.ward_tree(X, connectivity=graph, n_clusters=5)),
        (linkage_tree(X, linkage="single"), peer.linkage_tree(X, linkage="single")),
        (linkage_tree(X, graph, linkage="average"), peer.linkage_tree(X, graph, linkage="average")),
    ):
        assert len(ours) == len(theirs)
        assert_array_equal(np.sort(ours[0], axis=1), np.sort(theirs[0], axis=1))
        assert ours[1:3] == theirs[1:3]
        if theirs[3] is not None:
            assert_array_equal(ours[3], theirs[3])
    with pytest.warns(UserWarning, match="Partial build"):
        ward_tree(X, n_clusters=4)


def test_columns_are_pooled_as_scikit_learn_does(tmp_path):
    X = np.random.default_rng(10).normal(size=(60, 12)).astype(np.float32)
    for options in ({}, {"linkage": "average", "metric": "manhattan"}, {"pooling_func": np.median}):
        ours = FeatureAgglomeration(4, **options).fit(X)
        theirs = peer.FeatureAgglomeration(4, **options).fit(X)
        assert_array_equal(ours.labels_, theirs.labels_)
        pooled = ours.transform(X)
        assert pooled.dtype == np.float32
        assert_allclose(pooled, theirs.transform(X), rtol=1e-5, atol=1e-6)
        assert_allclose(ours.inverse_transform(pooled), theirs.inverse_transform(pooled))
        assert_allclose(ours.transform(sp.csr_array(X)), pooled, rtol=1e-5, atol=1e-6)
        assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
        ours.save(tmp_path / "model.epi")
        assert_array_equal(ep.io.load(tmp_path / "model.epi").transform(X), pooled)
        times = np.random.default_rng(11).integers(0, 3, 60)
        weighted = FeatureAgglomeration(4, **options).fit(X, sample_weight=times)
        repeated = FeatureAgglomeration(4, **options).fit(np.repeat(X, times, axis=0))
        assert_allclose(weighted.linkage_[:, 2], repeated.linkage_[:, 2], rtol=1e-5)
        assert_array_equal(weighted.labels_, repeated.labels_)
    scanned = ours.transform(da.from_array(X, chunks=(25, 12)))
    assert_allclose(np.asarray(scanned), pooled, rtol=1e-6)
    assert not hasattr(ours, "fit_predict")
    with pytest.raises(DataError, match="3 columns; expected 4"):
        ours.inverse_transform(pooled[:, :3])
    with pytest.raises(ParameterError, match="sample_weight with metric='chebyshev'"):
        FeatureAgglomeration(linkage="single", metric="chebyshev").fit(X, sample_weight=times)
    with pytest.raises(DataError, match="minimum of 2"):
        FeatureAgglomeration().fit(X[:, :1])


@pytest.mark.serial
def test_single_linkage_and_wards_need_memory_for_the_rows_only():
    X = np.random.default_rng(8).normal(size=(12_000, 2))  # all distances would take 576 MB
    with ep.config(memory_limit=64 << 20):
        for linkage in ("single", "ward"):
            assert AgglomerativeClustering(linkage=linkage).fit(X).certificate_.holds
        with pytest.raises(MemoryError, match="Distances of 12000 rows"):
            AgglomerativeClustering(linkage="average").fit(X)


def test_bad_input_is_refused_by_name():
    X = np.random.default_rng(9).normal(size=(10, 2))
    for parameters, match in (
        ({"linkage": "ward", "metric": "manhattan"}, "Ward can only work with euclidean"),
        ({"linkage": "centroid", "connectivity": np.ones((10, 10))}, "takes no connectivity"),
        ({"linkage": "average", "algorithm": "vectors"}, "algorithm='vectors'"),
        ({"linkage": "mean"}, "linkage='mean'"),
        ({"n_clusters": 2, "distance_threshold": 1.0}, "Exactly one of"),
        ({"n_clusters": None, "distance_threshold": 1.0, "compute_full_tree": False}, "compute_full_tree must be True"),
    ):
        with pytest.raises(ParameterError, match=match):
            AgglomerativeClustering(**parameters).fit(X)
    for parameters, given_rows, match in (
        ({"n_clusters": 11}, X, "Cannot extract more clusters than samples"),
        ({"connectivity": np.ones((4, 4))}, X, "Wrong shape for connectivity matrix"),
        ({"metric": "precomputed", "linkage": "single"}, X, "Distance matrix should be square"),
        ({"metric": "precomputed", "linkage": "single"}, np.arange(4.0), "4 distances; expected n"),
        ({"metric": "precomputed", "linkage": "single"}, np.triu(np.ones((3, 3))), "not symmetric"),
        ({"metric": "cosine", "linkage": "single"}, np.eye(3)[:2] * [[0.0], [1.0]], "zero vectors"),
        ({}, X[:1], "minimum of 2"),
    ):
        with pytest.raises(DataError, match=match):
            AgglomerativeClustering(**parameters).fit(given_rows)
    with pytest.raises(DataTypeError, match="all rows in memory"):
        AgglomerativeClustering().fit(da.from_array(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        AgglomerativeClustering().fit(np.zeros((5, 2)))
