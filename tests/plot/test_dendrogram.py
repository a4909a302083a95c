"""The dendrogram has the leaves, heights and clusters of SciPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy

from epicycle import AgglomerativeClustering, plot
from epicycle.exceptions import DataError


@pytest.fixture(scope="module")
def model():
    return AgglomerativeClustering(4, linkage="average").fit(np.random.default_rng(0).normal(size=(40, 2)))


def test_leaves_heights_and_clusters(model):
    drawn = plot.dendrogram(model)
    theirs = hierarchy.dendrogram(model.linkage_, no_plot=True)
    assert_array_equal(drawn.data["node"][:40], theirs["leaves"])
    lines = sorted((np.array(x) - 5) / 10 for x in np.array(theirs["icoord"])[:, [0, 3]].mean(axis=1))
    assert_allclose(np.sort(drawn.data["x"][40:]), lines)
    assert_array_equal(np.sort(drawn.data["height"][40:]), model.linkage_[:, 2])
    assert_array_equal(drawn.data["cluster"][:40], model.labels_[drawn.data["node"][:40]])
    assert (drawn.data["cluster"] == -1).sum() == 3
    names = plot.dendrogram(model.linkage_, list("ab" * 20), distance_threshold=1.0).ax_.get_xticklabels()
    assert [name.get_text() for name in names] == ["ab"[leaf % 2] for leaf in theirs["leaves"]]


def test_the_top_of_a_large_tree(model):
    drawn = plot.dendrogram(model, most=6)
    theirs = hierarchy.dendrogram(model.linkage_, p=6, truncate_mode="lastp", no_plot=True)
    assert_array_equal(drawn.data["node"][:6], theirs["leaves"])
    assert drawn.data["count"][:6].sum() == 40
    assert [name.get_text() for name in drawn.ax_.get_xticklabels()] == theirs["ivl"]
    assert len(drawn.data["x"]) == 11


def test_what_is_no_tree_is_refused(model):
    with pytest.raises(DataError, match="expected a fitted model or a linkage matrix"):
        plot.dendrogram(np.zeros((3, 3)))
    with pytest.raises(DataError, match="labels: 2; expected one for each of 40"):
        plot.dendrogram(model, ["a", "b"])
    with pytest.raises(DataError, match="not there yet"):
        plot.dendrogram(np.array([[0, 9, 1.0, 2]]))
    with pytest.raises(DataError, match="merged twice"):
        plot.dendrogram(np.array([[0, 1, 1.0, 2], [0, 3, 2.0, 3]]))
