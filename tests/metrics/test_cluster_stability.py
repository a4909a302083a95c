"""Stability under resampling: planted clusters, data without any, estimators of others, and the same bits by seed."""

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans as SklearnKMeans
from sklearn.datasets import load_iris, make_moons

from epicycle import KMeans
from epicycle.metrics import cluster_stability


def blobs(n=40):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(c, 0.5, size=(n, 2)) for c in ((0, 0), (5, 0), (0, 5))])


def test_planted_clusters_are_stable_and_more_clusters_are_not():
    found = cluster_stability(KMeans(3), blobs(), random_state=0)
    assert found.verdict == "stable"
    assert found.mean > 0.99 > found.reference
    assert found.n_clusters == 3
    assert str(found).startswith("stable: two subsamples agree with an adjusted Rand index of 1.00")
    assert cluster_stability(KMeans(6), blobs(), random_state=0).mean < 0.85


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 4])
def test_data_without_clusters_is_no_better_than_chance(seed, k):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(size=(150, 2)) if seed else rng.normal(size=(150, 3))
    assert cluster_stability(KMeans(k), rows, random_state=seed).verdict == "no better than chance"


@pytest.mark.slow
def test_the_level_is_that_of_a_test():
    """Uniform rows are called stable in about one case of twenty: at most 9 of 60 (probability 0.998)."""
    found = [
        cluster_stability(
            KMeans(3), np.random.default_rng(seed).uniform(size=(60, 2)), n_resamples=8, random_state=seed
        ).verdict
        for seed in range(60)
    ]
    assert sum(verdict != "no better than chance" for verdict in found) <= 9


def test_any_estimator_and_noise():
    rows = load_iris().data
    assert cluster_stability(SklearnKMeans(2, n_init=1), rows, random_state=0).verdict == "stable"
    moons, _ = make_moons(200, noise=0.04, random_state=0)
    assert cluster_stability(DBSCAN(eps=0.25), moons, random_state=0).verdict == "stable"
    assert cluster_stability(DBSCAN(eps=50.0), moons, random_state=0).verdict == "one cluster"


def test_the_same_seed_gives_the_same_bits():
    first, second, other = (cluster_stability(KMeans(3), blobs(), n_references=2, random_state=s) for s in (1, 1, 2))
    assert first.scores.tolist() == second.scores.tolist()
    assert first.reference_scores.tolist() == second.reference_scores.tolist()
    assert first.reference_scores.tolist() != other.reference_scores.tolist()


class Fractions:
    def fit_predict(self, X):
        return np.linspace(0, 1, len(X))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cluster_stability(object(), blobs()), "estimator: object has no fit_predict"),
        (lambda: cluster_stability(Fractions(), blobs()), "Fractions gave labels of shape .* expected 84 integers"),
        (lambda: cluster_stability(KMeans(2), blobs()[:5]), "X: has 5 rows; expected at least 10"),
        (lambda: cluster_stability(KMeans(2), blobs(), n_resamples=0), "n_resamples=0"),
        (lambda: cluster_stability(KMeans(2), blobs(), subsample=1.5), "subsample=1.5"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
