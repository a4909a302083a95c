"""Agreement of two partitions: by hand, against scikit-learn, by enumeration, and by what must not change it."""

import itertools
import math

import numpy as np
import pytest
import sklearn.metrics
import sklearn.metrics.cluster
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import metrics

TRUE, PRED = ["a", "a", "a", "b", "b", "c"], [0, 0, 1, 1, 1, 1]
SCORES = [
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "completeness_score",
    "fowlkes_mallows_score",
    "homogeneity_score",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "rand_score",
    "v_measure_score",
]
partition = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=25)


def test_by_hand():
    """The table is ((2, 1), (0, 2), (0, 1)); of 15 pairs 1 + 1 are together in both, 4 in one, 7 in the other."""
    assert_array_equal(metrics.contingency_matrix(TRUE, PRED), [[2, 1], [0, 2], [0, 1]])
    assert_array_equal(metrics.pair_confusion_matrix(TRUE, PRED), 2 * np.array([[15 - 4 - 7 + 2, 7 - 2], [4 - 2, 2]]))
    assert metrics.rand_score(TRUE, PRED) == pytest.approx(8 / 15, abs=1e-15)
    expected = 4 * 7 / 15
    assert metrics.adjusted_rand_score(TRUE, PRED) == pytest.approx(
        (2 - expected) / ((4 + 7) / 2 - expected), abs=1e-15
    )
    assert metrics.fowlkes_mallows_score(TRUE, PRED) == pytest.approx(2 / math.sqrt(4 * 7), abs=1e-15)
    assert metrics.purity_score(TRUE, PRED) == pytest.approx((2 + 2) / 6, abs=1e-15)
    information = (2 * math.log(6 * 2 / (3 * 2)) + math.log(6 / (3 * 4)) + 3 * math.log(6 / 4)) / 6
    assert metrics.mutual_info_score(TRUE, PRED) == pytest.approx(information, abs=1e-15)
    h_true = math.log(6) - (3 * math.log(3) + 2 * math.log(2)) / 6
    h_pred = math.log(6) - (2 * math.log(2) + 4 * math.log(4)) / 6
    h, c = information / h_true, information / h_pred
    assert_allclose(
        metrics.homogeneity_completeness_v_measure(TRUE, PRED, beta=0.5),
        [h, c, 1.5 * h * c / (0.5 * h + c)],
        rtol=1e-14,
    )
    for method, mean in (("min", min(h_true, h_pred)), ("geometric", math.sqrt(h_true * h_pred))):
        value = metrics.normalized_mutual_info_score(TRUE, PRED, average_method=method)
        assert value == pytest.approx(information / mean, abs=1e-14)


def test_expected_information_is_the_mean_over_all_arrangements():
    first, second = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1])
    values = [metrics.mutual_info_score(first, p) for p in itertools.permutations(second)]
    table = metrics.contingency_matrix(first, second)
    assert metrics.expected_mutual_information(table) == pytest.approx(np.mean(values), abs=1e-14)


def test_expected_information_of_many_rows():
    """Large tables, where a sum of logarithms of factorials loses digits: (R - 1)(C - 1) / 2N to first order."""
    table = np.full((3, 4), 10**8)
    assert metrics.expected_mutual_information(table) == pytest.approx(3 * 2 / (2 * table.sum()), rel=1e-6)
    rng = np.random.default_rng(0)
    table = rng.integers(0, 300, size=(20, 30))
    theirs = sklearn.metrics.cluster.expected_mutual_information(table, int(table.sum()))
    assert metrics.expected_mutual_information(table) == pytest.approx(theirs, abs=1e-10)


@settings(deadline=None, max_examples=60)
@given(partition, st.randoms(use_true_random=False))
def test_equal_to_scikit_learn_and_independent_of_names_and_order(rows, random):
    first, second = np.array(rows).T
    order = list(range(len(rows)))
    random.shuffle(order)
    names = np.array(["u", "z", "m", "b", "k"])
    for name in SCORES:
        ours, theirs = getattr(metrics, name), getattr(sklearn.metrics, name)
        value = ours(first, second)
        assert value == pytest.approx(theirs(first, second), abs=1e-12), name
        assert ours(names[first][order], -3 * second[order]) == pytest.approx(value, abs=1e-12)
        assert value <= 1 + 1e-12 or name == "mutual_info_score"
    purity = metrics.purity_score(first, second)
    assert max(np.bincount(first)) / len(first) <= purity <= 1
    assert metrics.purity_score(first, np.arange(len(first))) == 1.0


@settings(deadline=None, max_examples=40)
@given(partition, st.data())
def test_a_weight_is_a_number_of_repetitions(rows, data):
    first, second = np.array(rows).T
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    if not weight.any():
        weight[0] = 1
    repeated = np.repeat(first, weight), np.repeat(second, weight)
    for name in [*SCORES, "purity_score"]:
        function = getattr(metrics, name)
        assert function(first, second, sample_weight=weight) == pytest.approx(function(*repeated), abs=1e-12), name
    assert_array_equal(
        metrics.contingency_matrix(first, second, sample_weight=weight), metrics.contingency_matrix(*repeated)
    )


def test_a_cell_of_weight_zero_is_no_cell():
    assert metrics.adjusted_mutual_info_score([0, 0, 1], [0, 1, 0], sample_weight=[0, 1, 1]) == 1.0


def test_pairs_of_many_rows_do_not_overflow():
    value = metrics.adjusted_rand_score([0, 0, 1, 1], [0, 1, 1, 1], sample_weight=[10**9, 10**8, 10**9, 10**9])
    small = metrics.adjusted_rand_score([0, 0, 1, 1], [0, 1, 1, 1], sample_weight=[1000, 100, 1000, 1000])
    assert value == pytest.approx(small, abs=1e-3)


def test_weights_of_a_table_may_be_fractions_but_not_of_pairs():
    assert metrics.contingency_matrix([0, 1], [0, 0], sample_weight=[0.5, 2]).tolist() == [[0.5], [2.0]]
    with pytest.raises(ValueError, match=r"sample_weight: 0\.5 is no whole number; expected how often"):
        metrics.adjusted_rand_score([0, 1], [0, 0], sample_weight=[0.5, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.rand_score([0, 1], [0, 1, 1]), r"inconsistent numbers of samples: \[2, 3\]"),
        (lambda: metrics.rand_score([[0, 1]], [0]), r"labels_true must be 1D: shape is \(1, 2\)"),
        (lambda: metrics.purity_score([0, np.nan], [0, 1]), "labels_true contains NaN"),
        (lambda: metrics.purity_score([0, "a", None], np.array([0, 1, 2])), "cannot be compared"),
        (lambda: metrics.v_measure_score([0, 1], [0, 1], beta=-1), "beta=-1"),
        (lambda: metrics.normalized_mutual_info_score([0], [1], average_method="mean"), "average_method='mean'"),
        (lambda: metrics.mutual_info_score(None, None, contingency=[[-1.0]]), "contingency: expected"),
        (lambda: metrics.expected_mutual_information([[2, 1]], 4), "n_samples=4; expected the sum of the table, 3"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_that_are_continuous_are_told_of():
    with pytest.warns(UserWarning, match="labels_pred: Clustering metrics expects discrete values"):
        metrics.rand_score([0, 1], [0.5, 0.25])
