"""Criteria of ranked lists against scikit-learn and against sums written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import ndcg_score

from epicycle.metrics import (
    catalogue_coverage,
    mean_average_precision_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
)


@pytest.fixture(scope="module")
def lists():
    """Lists of 12 of 20 items for 30 users, and gains of items, some users without any."""
    rng = np.random.default_rng(0)
    ranked = [rng.permutation(20).tolist() for _ in range(30)]
    gains = np.where(rng.random((30, 20)) < 0.2, rng.integers(1, 5, size=(30, 20)), 0).astype(float)
    gains[3] = 0
    return ranked, gains


@pytest.mark.parametrize("k", [1, 5, 20])
def test_ndcg_is_that_of_scikit_learn(lists, k):
    ranked, gains = lists
    scores = np.zeros((30, 20))
    for u, row in enumerate(ranked):
        scores[u, row] = np.arange(20, 0, -1)
    some = gains.any(axis=1)
    relevant = [{int(i): g[i] for i in np.flatnonzero(g)} for g in gains]
    assert ndcg_at_k(ranked, relevant, k) == pytest.approx(ndcg_score(gains[some], scores[some], k=k))
    binary = (gains > 0).astype(float)
    assert ndcg_at_k(ranked, [set(r) for r in relevant], k) == pytest.approx(
        ndcg_score(binary[some], scores[some], k=k)
    )


@pytest.mark.parametrize("k", [1, 5, 12])
def test_precision_recall_and_average_precision_by_matrices(lists, k):
    ranked, gains = lists
    ranked = [row[:12] for row in ranked]
    hit = np.array([[gains[u, i] > 0 for i in row[:k]] for u, row in enumerate(ranked)])
    size = (gains > 0).sum(axis=1)
    some = size > 0
    relevant = [set(np.flatnonzero(g).tolist()) for g in gains]
    assert_allclose(precision_at_k(ranked, relevant, k), hit.mean(axis=1)[some].mean())
    assert_allclose(recall_at_k(ranked, relevant, k), (hit.sum(axis=1)[some] / size[some]).mean())
    precision = np.cumsum(hit, axis=1) / np.arange(1, k + 1)
    average = (precision * hit).sum(axis=1)[some] / np.minimum(k, size[some])
    assert_allclose(mean_average_precision_at_k(ranked, relevant, k), average.mean())
    shown = len({i for row in ranked for i in row[:k]})
    assert catalogue_coverage(ranked, 20, k) == shown / 20


def test_what_is_refused_is_named():
    with pytest.raises(ValueError, match="recommended: 1 lists for 2"):
        recall_at_k([["a"]], [{"a"}, {"b"}])
    with pytest.raises(ValueError, match="twice"):
        precision_at_k([["a", "a"]], [{"a"}])
    with pytest.raises(ValueError, match="no user has a relevant item"):
        ndcg_at_k([["a"]], [set()])
    with pytest.raises(ValueError, match="gain of -1"):
        ndcg_at_k([["a"]], [{"a": -1.0}])
    with pytest.raises(ValueError, match="n_items=1"):
        catalogue_coverage([["a", "b"]], 1)
