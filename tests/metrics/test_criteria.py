"""Criteria of a clustering from its rows: by hand, against scikit-learn, and by what must not change them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.metrics
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import metrics

X = np.array([[0.0, 0.0], [0.0, 2.0], [6.0, 0.0], [6.0, 2.0], [6.0, 7.0]])
LABELS = [0, 0, 1, 1, 1]
CRITERIA = ["silhouette_score", "calinski_harabasz_score", "davies_bouldin_score"]


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 7, size=403)
    return rng.normal(size=(403, 5)) + labels[:, None], labels


def test_by_hand():
    """Means (0, 1) and (6, 3): scatter within 2 + (9 + 1 + 16), between 2 (3.6^2 + 1.2^2) + 3 (2.4^2 + 0.8^2)."""
    within, between = 2 + 26, 2 * (3.6**2 + 1.2**2) + 3 * (2.4**2 + 0.8**2)
    assert metrics.sum_of_squared_errors(X, LABELS) == pytest.approx(within, abs=1e-13)
    assert metrics.separation(X, LABELS) == pytest.approx(between, abs=1e-12)
    assert metrics.separation(X, LABELS, kind="centers") == pytest.approx(np.sqrt(40), abs=1e-14)
    assert metrics.separation(X, LABELS, kind="rows") == 6.0
    assert metrics.calinski_harabasz_score(X, LABELS) == pytest.approx(between / 1 / (within / 3), abs=1e-12)
    assert metrics.davies_bouldin_score(X, LABELS) == pytest.approx((1 + (3 + 1 + 4) / 3) / np.sqrt(40), abs=1e-14)
    root = np.sqrt(6**2 + 2**2)
    a, b = (2 + 7) / 2, (6 + root) / 2
    assert metrics.silhouette_samples(X, LABELS)[2] == pytest.approx(1 - a / b, abs=1e-14)


def test_silhouettes_of_the_first_published_example():
    """Two rows at 0 and 1, one at 5: (b - a) / max(a, b) with a = 1 and b = 5 or 4; a cluster of one row has 0."""
    assert_allclose(metrics.silhouette_samples([[0.0], [1.0], [5.0]], [0, 0, 1]), [4 / 5, 3 / 4, 0.0], atol=1e-15)


def test_criteria_equal_those_of_scikit_learn(groups):
    rows, labels = groups
    for name in CRITERIA:
        ours, theirs = getattr(metrics, name), getattr(sklearn.metrics, name)
        assert ours(rows, labels) == pytest.approx(theirs(rows, labels), abs=1e-12)
        assert ours(rows.astype(np.float32), labels) == pytest.approx(theirs(rows, labels), abs=1e-5)
        assert ours(pd.DataFrame(rows), labels) == ours(rows, labels)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "chebyshev", "minkowski", "braycurtis", "precomputed"])
def test_silhouettes_by_any_distance(groups, metric):
    rows, labels = groups
    options = {"p": 3} if metric == "minkowski" else {}
    table = sklearn.metrics.pairwise_distances(rows) if metric == "precomputed" else rows
    theirs = sklearn.metrics.silhouette_samples(table, labels, metric=metric, **options)
    assert_allclose(metrics.silhouette_samples(table, labels, metric=metric, **options), theirs, atol=1e-12)


def test_silhouettes_of_sparse_rows(groups):
    rows, labels = groups
    cut = np.where(rows > 3, rows, 0.0)
    assert_allclose(
        metrics.silhouette_samples(sp.csr_array(cut), labels), metrics.silhouette_samples(cut, labels), atol=1e-12
    )


@pytest.mark.parametrize("n_clusters", [2, 60, 200, 402])
def test_silhouettes_of_many_small_clusters(groups, n_clusters):
    rows, _ = groups
    labels = np.random.default_rng(n_clusters).permutation(np.arange(len(rows)) % n_clusters)
    assert_allclose(
        metrics.silhouette_samples(rows, labels), sklearn.metrics.silhouette_samples(rows, labels), atol=1e-12
    )


def test_silhouettes_have_the_same_bits_for_any_number_of_threads(groups):
    rows, labels = groups
    one = metrics.silhouette_samples(rows, labels, n_jobs=1)
    for n_jobs in (2, 4):
        assert_array_equal(metrics.silhouette_samples(rows, labels, n_jobs=n_jobs), one)
        assert_array_equal(
            metrics.silhouette_samples(rows, labels, metric="manhattan", n_jobs=n_jobs),
            metrics.silhouette_samples(rows, labels, metric="manhattan", n_jobs=1),
        )


def test_silhouettes_at_extreme_scales_and_offsets(groups):
    rows, labels = groups
    expected = metrics.silhouette_samples(rows, labels)
    for factor in (1e-200, 1e200):
        assert_allclose(metrics.silhouette_samples(rows * factor, labels), expected, atol=1e-12)
    # scikit-learn's products of rows lose all digits here
    assert_allclose(metrics.silhouette_samples(rows + 1e8, labels), expected, atol=1e-6)


def test_an_estimate_covers_the_mean_and_says_how_well(groups):
    rows, labels = groups
    exact = metrics.silhouette_score(rows, labels)
    found = [metrics.silhouette_estimate(rows, labels, sample_size=80, random_state=seed) for seed in range(60)]
    assert np.mean([e.lower <= exact <= e.upper for e in found]) > 0.85
    spread = np.std([e.score for e in found])
    assert spread == pytest.approx(np.mean([e.standard_error for e in found]), rel=0.3)
    assert abs(np.mean([e.score for e in found]) - exact) < 3 * spread / np.sqrt(60)
    assert metrics.silhouette_score(rows, labels, sample_size=80, random_state=3) == pytest.approx(found[3].score)
    whole = metrics.silhouette_estimate(rows, labels, sample_size=10_000, random_state=0)
    assert whole.score == pytest.approx(exact)
    assert whole.standard_error == 0


rows_with_labels = st.integers(4, 20).flatmap(
    lambda n: st.tuples(
        st.lists(st.tuples(*[st.integers(-4, 4)] * 2), min_size=n, max_size=n),
        st.lists(st.integers(0, 2), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


@settings(deadline=None, max_examples=60)
@given(rows_with_labels, st.randoms(use_true_random=False))
def test_a_weight_is_a_number_of_repetitions_and_names_and_order_do_not_matter(drawn, random):
    rows, labels, weight = np.array(drawn[0], dtype=float), np.array(drawn[1]), np.array(drawn[2])
    again = np.repeat(rows, weight, axis=0), np.repeat(labels, weight)
    order = list(range(len(rows)))
    random.shuffle(order)
    if not 1 < len(set(again[1])) < len(again[1]):
        return
    for name in CRITERIA:
        function = getattr(metrics, name)
        value = function(rows, labels, sample_weight=weight)
        assert value == pytest.approx(function(*again), abs=1e-10), name
        assert value == pytest.approx(getattr(sklearn.metrics, name)(*again), abs=1e-9), name
        renamed = np.array(["q", "c", "x"])[labels]
        moved = function(rows[order] + 3.0, renamed[order], sample_weight=weight[order])
        assert moved == pytest.approx(value, abs=1e-10), name
    silhouettes = metrics.silhouette_samples(rows, labels, sample_weight=weight)
    assert (np.isnan(silhouettes) == (weight == 0)).all()
    assert (np.abs(silhouettes[weight > 0]) <= 1).all()
    total = metrics.sum_of_squared_errors(rows, np.zeros(len(rows)), sample_weight=weight)
    parts = metrics.sum_of_squared_errors(rows, labels, sample_weight=weight)
    assert total == pytest.approx(parts + metrics.separation(rows, labels, sample_weight=weight), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.silhouette_score(X, [0] * 5), "Number of labels is 1"),
        (lambda: metrics.calinski_harabasz_score(X, range(5)), "Number of labels is 5"),
        (lambda: metrics.davies_bouldin_score(X, [0, 1]), r"inconsistent numbers of samples: \[5, 2\]"),
        (lambda: metrics.silhouette_score(X, LABELS, metric="euklid"), "metric='euklid'; expected one of"),
        (lambda: metrics.silhouette_score(X, LABELS, sample_size=0), "sample_size=0"),
        (lambda: metrics.silhouette_score(X, LABELS, metric="precomputed"), "has shape"),
        (lambda: metrics.separation(X, [0] * 5, kind="rows"), "one cluster has no other"),
        (lambda: metrics.separation(X, LABELS, kind="far"), "kind='far'"),
        (lambda: metrics.sum_of_squared_errors(X * np.nan, LABELS), "NaN"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
