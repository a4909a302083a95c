"""How many clusters: planted ones, none at all, the rule of standard errors by its formula, seeds, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import datasets

from epicycle import KMeans
from epicycle.cluster.kmeans._number_of_clusters import drawn, elbow_of, gap_of
from epicycle.exceptions import DataError, ParameterError


@pytest.fixture(scope="module")
def planted():
    return datasets.make_blobs(300, centers=4, n_features=3, cluster_std=0.5, random_state=0)[0]


def test_planted_clusters_are_found(planted):
    model = KMeans(n_init=3, random_state=0)
    elbow = model.elbow(planted, 8)
    assert (elbow.n_clusters, elbow.clear) == (4, True)
    assert "4 clusters explain" in elbow.reason
    fits = [KMeans(k, n_init=3, random_state=0).fit(planted).inertia_ for k in range(1, 9)]
    assert_allclose(elbow.distortion, np.minimum.accumulate(fits))
    assert_allclose(model.elbow(sp.csr_array(planted), [1, 2, 4]).distortion, elbow.distortion[[0, 1, 3]], rtol=1e-9)
    for box in ("principal", "features"):
        gap = model.gap_statistic(planted, 6, n_draws=5, box=box)
        assert (gap.n_clusters, gap.found) == (4, True)
    assert "4 is the least k" in gap.reason
    assert not hasattr(model, "cluster_centers_")


def test_rows_without_clusters_are_called_so():
    X = np.random.default_rng(0).uniform(size=(400, 2))
    model = KMeans(n_init=3, random_state=0)
    elbow = model.elbow(X, 8)
    assert not elbow.clear
    assert elbow.reason.startswith("no clear bend")
    assert model.gap_statistic(X, 5, n_draws=10).n_clusters == 1


def test_the_rule_of_standard_errors():
    k, rows = np.array([1, 2, 3, 4]), np.random.default_rng(1).normal(size=(20, 2))
    table = {"rows": [8.0, 4.0, 3.5, 3.4], "draw 0": [8.0, 6.0, 5.0, 4.0], "draw 1": [9.0, 7.0, 5.5, 4.5]}
    result = gap_of(k, rows, lambda _rows, name: np.array(table[name]), 2, 0, "features")
    logs = np.log([table["draw 0"], table["draw 1"]])
    assert_allclose(result.gap, logs.mean(axis=0) - np.log(table["rows"]))
    assert_allclose(result.error, logs.std(axis=0) * np.sqrt(1.5))
    first = next(i for i in range(3) if result.gap[i] >= result.gap[i + 1] - result.error[i + 1])
    assert result.n_clusters == k[first] == 2
    grows = {**table, "rows": [8.0, 4.0, 2.0, 1.0]}
    result = gap_of(k, rows, lambda _rows, name: np.array(grows[name]), 2, 0, "features")
    assert (result.n_clusters, result.found) == (4, False)


def test_draws_fill_the_box_of_the_rows_by_the_seed():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3)) * [1.0, 1.0, 0.01] + 50
    X[:, 1] += X[:, 0]
    draw = drawn(X, 0, 0, "features")
    assert_array_equal(draw, drawn(X, 0, 0, "features"))
    assert not np.array_equal(draw, drawn(X, 0, 1, "features"))
    assert (draw >= X.min(axis=0)).all()
    assert (draw <= X.max(axis=0)).all()
    assert abs(np.corrcoef(draw.T)[0, 1]) < 0.1
    assert np.corrcoef(drawn(X, 0, 0, "principal").T)[0, 1] > 0.5  # along the rows' own axes


def test_exact_copies_and_bad_input(planted):
    rows = np.repeat(np.eye(3), 4, axis=0)
    elbow = KMeans(random_state=0).elbow(rows, 5)
    assert (elbow.n_clusters, elbow.clear) == (3, True)
    assert elbow_of(np.array([1, 2, 3]), [0.0, 0.0, 0.0]).n_clusters == 1
    with pytest.raises(DataError, match="J is 0 for 3 clusters"):
        KMeans(random_state=0).gap_statistic(rows, 5, n_draws=2)
    for k in (2, [1, 2], [0, 1, 2], [1.5, 2, 3]):
        with pytest.raises(ParameterError, match="expected an integer of at least 3"):
            KMeans().elbow(planted, k)
    with pytest.raises(ParameterError, match="n_draws=1"):
        KMeans().gap_statistic(planted, 3, n_draws=1)
    with pytest.raises(ParameterError, match="box='round'"):
        KMeans().gap_statistic(planted, 3, box="round")
    with pytest.raises(ParameterError, match="init: centers are given"):
        KMeans(3, init=planted[:3]).elbow(planted, 3)


def test_plots(planted):
    pytest.importorskip("matplotlib").use("agg")
    model = KMeans(random_state=0)
    assert model.elbow(planted, 5).plot().get_xlabel() == "number of clusters k"
    assert model.gap_statistic(planted, 3, n_draws=2).plot().get_ylabel() == "gap"
