"""Comparisons of drawn with real rows: closed forms, brute force, rates of error, and collapses that are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist
from scipy.stats import binom, kstest
from sklearn.linear_model import LogisticRegression

from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.generative.evaluate import (
    coverage,
    frechet_distance,
    mode_collapse,
    precision_recall,
    two_sample_test,
)
from epicycle.generative.evaluate._precision_recall import expected_coverage


def normal(n, p=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def ring_of_modes(n, modes=8, seed=0, deviation=0.1):
    rng = np.random.default_rng(seed)
    k = rng.integers(0, modes, n)
    angle = 2 * np.pi * k / modes
    return np.column_stack([np.cos(angle), np.sin(angle)]) * 2 + deviation * rng.normal(size=(n, 2)), k


# ------------------------------------------------------------------------------------------- Frechet distance


@pytest.mark.parametrize("p", [1, 3, 20])
def test_frechet_distance_is_its_formula(p):
    rng = np.random.default_rng(p)
    X, Y = normal(50, p) @ rng.normal(size=(p, p)), 1 + normal(70, p, 1) @ rng.normal(size=(p, p))
    S, T = np.atleast_2d(np.cov(X.T)), np.atleast_2d(np.cov(Y.T))
    between = np.square(X.mean(axis=0) - Y.mean(axis=0)).sum()
    expected = between + np.trace(S + T - 2 * np.real(sqrtm(S @ T)))
    assert_allclose(frechet_distance(X, Y), expected, rtol=1e-6)
    assert_allclose(frechet_distance(Y, X), expected, rtol=1e-6)
    assert frechet_distance(X, X[::-1]) == pytest.approx(0, abs=1e-10 * np.square(X).sum())


def test_frechet_distance_of_fewer_rows_than_columns():
    X, Y = normal(6, 40), normal(5, 40, 1)
    # Of commuting covariances it is the distance of the roots of their eigenvalues.
    u = np.linalg.qr(normal(40, 2, 2))[0]
    a, b = np.outer([-1.0, 1.0], u[:, 0]), np.outer([-3.0, 3.0], u[:, 1])
    assert frechet_distance(a, b) == pytest.approx(2 + 18)
    assert frechet_distance(X, Y) > 0


def test_frechet_distance_of_features():
    X, Y = normal(100, 3), normal(100, 3, 1)
    square = frechet_distance(X, Y, features=np.square)
    assert square == pytest.approx(frechet_distance(X**2, Y**2))
    images = normal(100, 12).reshape(100, 3, 4)
    flat = frechet_distance(images.reshape(100, 12), 2 * images.reshape(100, 12))
    assert frechet_distance(images, 2 * images) == pytest.approx(flat, rel=1e-5)


def test_features_of_a_network_are_the_units_before_its_last_layer():
    from epicycle import ConvNetClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    images = rng.normal(size=(60, 6, 6)).astype(np.float32) + y[:, None, None]
    net = ConvNetClassifier([["conv", 2, 3], "relu", "flatten", ["linear", 5], "relu"], max_iter=2, random_state=0)
    net.fit(images, y)
    units = net.activations(images, len(net.module_) - 2)
    assert units.shape == (60, 5)
    head = net.module_[-1]
    assert_allclose(units @ head.weight.detach().numpy().T + head.bias.detach().numpy(), net._scores(images), atol=1e-5)
    expected = frechet_distance(units[:30], units[30:])
    assert frechet_distance(images[:30], images[30:], features=net) == pytest.approx(expected)


# ------------------------------------------------------------------------------------------- precision and recall


@pytest.mark.parametrize("p", [2, 15])
def test_precision_and_recall_by_brute_force(p):
    X, Y, k = normal(120, p), 0.7 * normal(90, p, 1) + 0.3, 3
    found = precision_recall(X, Y, n_neighbors=k)
    of_real = np.sort(cdist(X, X), axis=1)[:, k]  # the row itself comes first
    of_drawn = np.sort(cdist(Y, Y), axis=1)[:, k]
    inside = cdist(X, Y) <= of_real[:, None]
    assert found.precision == inside.any(axis=0).mean()
    assert found.coverage == inside.any(axis=1).mean() == coverage(X, Y, n_neighbors=k)
    assert found.density == pytest.approx(inside.sum() / (k * 90))
    assert found.recall == (cdist(Y, X) <= of_drawn[:, None]).any(axis=0).mean()


def test_coverage_has_its_expected_value():
    found = [coverage(normal(80, 3, i), normal(50, 3, 1000 + i), n_neighbors=4) for i in range(60)]
    assert np.mean(found) == pytest.approx(expected_coverage(80, 50, 4), abs=0.03)
    assert expected_coverage(5, 5, 1) == pytest.approx(1 - 4 / 9)


def test_narrow_samples_are_precise_and_wide_ones_recall():
    X = normal(800)
    narrow, wide = precision_recall(X, 0.3 * normal(800, 2, 1)), precision_recall(X, 4 * normal(800, 2, 1))
    assert narrow.precision > 0.95
    assert narrow.recall < 0.6
    assert wide.precision < 0.4
    assert wide.recall > 0.9


# ------------------------------------------------------------------------------------------- two samples


def test_p_values_of_one_distribution_are_binomial():
    p = np.array([two_sample_test(normal(60, 2, i), normal(60, 2, 5000 + i)).p_value for i in range(150)])
    for level in (0.05, 0.1, 0.3):
        assert binom.cdf((p <= level).sum() - 1, 150, level) < 0.999
    hits = binom.isf(p, 30, 0.5)
    assert kstest(hits + np.random.default_rng(0).uniform(0, 1, 150), lambda x: binom_smoothed(x, 30)).pvalue > 1e-3


def binom_smoothed(x, n):
    """Distribution of a binomial number plus a uniform one; `isf` gives one less than the number of hits."""
    k = np.floor(x)
    return binom.cdf(k, n, 0.5) + (x - k) * binom.pmf(k + 1, n, 0.5)


def test_a_difference_is_found_by_neighbours_and_by_a_classifier():
    X, Y = normal(600), normal(600, 2, 1) + np.array([0.5, 0.0])
    assert two_sample_test(X, Y).p_value < 1e-3
    found = two_sample_test(X, Y, classifier=LogisticRegression())
    assert found.p_value < 1e-3
    assert found.lower_bound < found.accuracy
    assert "differ" in found.verdict
    # The area under the curve of the best score: P(N(0.5, 2) > 0) = Phi(0.5 / sqrt 2).
    assert found.accuracy == pytest.approx(0.638, abs=0.07)
    assert "no difference" in str(two_sample_test(X, normal(600, 2, 3)))


def test_ties_are_decided_by_coins():
    found = two_sample_test(np.zeros((400, 1)), np.zeros((400, 1)))
    assert 0.001 < found.p_value < 0.999
    assert found.n_pairs == 200


# ------------------------------------------------------------------------------------------- mode collapse


def test_missing_modes_are_named():
    X, k = ring_of_modes(1000)
    Y, j = ring_of_modes(1000, seed=1)
    good = mode_collapse(X, Y, k)
    assert not good.collapsed
    assert good.verdict == "no mode collapse: rows of all 8 modes are drawn"
    bad = mode_collapse(X, Y[(j != 2) & (j != 5)], k)
    assert_array_equal(bad.modes[bad.missing], [2, 5])
    assert bad.collapsed
    assert "2 of 8 modes (2, 5)" in str(bad)
    assert_allclose(bad.real_shares, np.bincount(k) / 1000)
    hardly = mode_collapse(X, Y[(j != 2) | (np.arange(1000) % 20 == 0)], k)
    assert_array_equal(np.flatnonzero(hardly.missing), [2])


def test_missing_regions_are_found_without_labels():
    X, _ = ring_of_modes(1000)
    Y, j = ring_of_modes(1000, seed=1)
    assert not mode_collapse(X, Y).collapsed
    bad = mode_collapse(X, Y[j != 2])
    assert bad.collapsed
    assert not bad.repeats
    assert bad.real_shares[bad.missing].sum() == pytest.approx(1 / 8, abs=0.05)


def test_rows_that_repeat_are_a_collapse():
    X, k = ring_of_modes(600)
    rng = np.random.default_rng(3)
    Y = X[rng.integers(0, 30, 600)] + 1e-4 * rng.normal(size=(600, 2))
    found = mode_collapse(X, Y, k)
    assert found.repeats
    assert found.collapsed
    assert "repeat" in found.verdict
    whole = rng.integers(0, 3, (600, 2))
    assert np.isnan(mode_collapse(whole, rng.integers(0, 3, (500, 2))).spread)


def test_collapse_is_seldom_reported_where_there_is_none():
    reported = [mode_collapse(normal(300, 2, i), normal(300, 2, 900 + i)).collapsed for i in range(40)]
    assert sum(reported) <= 2


def test_columns_of_different_units_count_alike():
    X, _ = ring_of_modes(800)
    Y, j = ring_of_modes(800, seed=1)
    units = np.array([1.0, 1e6])
    found = [mode_collapse(a * units, b * units).missing.sum() for a, b in ((X, Y[j != 2]), (X, Y))]
    assert found[0] > 0
    assert found[1] == 0


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("function", [frechet_distance, precision_recall, coverage, two_sample_test, mode_collapse])
def test_what_is_refused(function):
    X = normal(30)
    with pytest.raises(DataError, match="drawn"):
        function(X, normal(30, 3))
    with pytest.raises(DataError, match="drawn"):
        function(X, X[:1])
    with pytest.raises(DataError, match="NaN"):
        function(X, np.where(X > 1, np.nan, X))
    with pytest.raises(ParameterTypeError, match="features"):
        function(X, X, features=3)


def test_further_refusals():
    X = normal(30)
    with pytest.raises(ParameterError, match="n_neighbors=30"):
        precision_recall(X, X, n_neighbors=30)
    with pytest.raises(ParameterError, match="n_neighbors=0"):
        coverage(X, X, n_neighbors=0)
    with pytest.raises(DataError, match="labels"):
        mode_collapse(X, X, [1, 2])
    with pytest.raises(ParameterTypeError, match="classifier"):
        two_sample_test(X, X, classifier=3)
    with pytest.raises(DataError, match="at least 20"):
        two_sample_test(X[:5], X)
