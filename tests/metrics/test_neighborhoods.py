"""Neighbours that embeddings keep: by the definition, against scikit-learn, and from a sample of the rows."""

import numpy as np
import pytest
import sklearn.manifold
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from epicycle.exceptions import DataError, ParameterError
from epicycle.metrics import continuity, neighborhood_preservation, trustworthiness


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    return X, X[:, :2] + 0.1 * rng.normal(size=(120, 2))


def by_definition(X, Z, k):
    """(trustworthiness, share of neighbours kept), row by row."""
    n, invented, same = len(X), 0, 0
    for i in range(n):
        near = [[j for j in np.argsort(d, kind="stable") if j != i] for d in (cdist(X[[i]], X)[0], cdist(Z[[i]], Z)[0])]
        invented += sum(max(0, near[0].index(j) + 1 - k) for j in near[1][:k])
        same += len(set(near[0][:k]) & set(near[1][:k]))
    return 1 - 2 * invented / (n * k * (2 * n - 3 * k - 1)), same / (n * k)


@pytest.mark.parametrize("k", [1, 5, 40])  # ranks are counted, and for many looked up
def test_by_the_definition(tables, k):
    X, Z = tables
    trust, kept = by_definition(X, Z, k)
    assert_allclose(trustworthiness(X, Z, n_neighbors=k), trust, rtol=1e-14)
    assert_allclose(continuity(X, Z, n_neighbors=k), by_definition(Z, X, k)[0], rtol=1e-14)
    assert_allclose(neighborhood_preservation(X, Z, n_neighbors=k), kept, rtol=1e-14)
    assert_allclose(trust, sklearn.manifold.trustworthiness(X, Z, n_neighbors=k), rtol=1e-14)


def test_ties_go_to_the_row_that_comes_first():
    X = np.array([[0.0], [1.0], [1.0], [1.0], [5.0], [7.0]])
    assert neighborhood_preservation(X, X[:, [0, 0]], n_neighbors=2) == 1.0
    assert trustworthiness(X, np.zeros((6, 1)), n_neighbors=1) == by_definition(X, np.zeros((6, 1)), 1)[0]


def test_metrics_samples_and_threads(tables):
    X, Z = tables
    D = cdist(X, X, "cosine")
    assert trustworthiness(X, Z, metric="cosine") == trustworthiness(D, Z, metric="precomputed")
    assert trustworthiness(X, Z, sample_size=500) == trustworthiness(X, Z)
    drawn = [trustworthiness(X, Z, sample_size=30, random_state=seed) for seed in range(60)]
    assert abs(np.mean(drawn) - trustworthiness(X, Z)) < 3 * np.std(drawn) / np.sqrt(60)
    assert np.std(drawn) > 0
    assert len({continuity(X, Z, n_jobs=jobs) for jobs in (1, 2, 4)}) == 1


def test_what_is_refused(tables):
    X, Z = tables
    with pytest.raises(ParameterError, match=r"n_neighbors \(60\) should be less than n_samples / 2"):
        trustworthiness(X, Z, n_neighbors=60)
    with pytest.raises(DataError, match="X_embedded: has 119 rows"):
        continuity(X, Z[1:])
    with pytest.raises(DataError, match="precomputed"):
        trustworthiness(X, Z, metric="precomputed")
