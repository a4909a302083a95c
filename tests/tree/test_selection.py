"""Exact sums and quantiles of numbers that are in several places."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal

from epicycle.data._quantiles import digit_counts, quantiles
from epicycle.tree._binning import RowSample, priority_limit, row_priorities
from epicycle.tree._exact_sums import exact_sum, exact_total, power_above
from epicycle.tree.boosting._losses import weighted_quantile


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 1.0, -1.0]), min_size=1, max_size=40),
    st.floats(0.01, 0.99),
    st.booleans(),
    st.integers(1, 3),
)
def test_quantiles_are_those_of_all_numbers(numbers, tau, weighted, n_groups):
    x = np.array(numbers)
    group = np.arange(len(x)) % min(n_groups, len(x))
    weight = np.random.default_rng(len(x)).integers(1, 5, len(x)).astype(float) if weighted else None
    n = np.bincount(group)
    total = np.bincount(group, weight) if weighted else None
    halves = [slice(0, len(x) // 3), slice(len(x) // 3, None)]

    def count(begin, shift, bits):
        return sum(
            digit_counts(x[h], group[h], None if weight is None else weight[h], begin, shift, bits) for h in halves
        )

    with np.errstate(over="ignore"):
        found = quantiles(count, tau, n, total)
        expected = [
            weighted_quantile(x[group == g], None if weight is None else weight[group == g], tau) for g in range(len(n))
        ]
    assert_array_equal(found, expected)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order(numbers, random):
    x = np.array(numbers)
    scale = power_above(np.abs(x).max())
    parts = np.array(random.sample(numbers, len(numbers)))
    cut = len(x) // 2
    total = exact_sum(x, scale)
    assert total == exact_sum(parts[:cut], scale) + exact_sum(parts[cut:], scale)
    assert abs(exact_total(total, scale) - float(x.astype(np.longdouble).sum())) <= 1e-15 * np.abs(x).sum() + 1e-280


@pytest.mark.parametrize("largest", [0.0, 5e-324, 1e-300, 1.0, 1e308, np.finfo(float).max])
def test_scales_stay_within_range(largest):
    scale = power_above(largest)
    assert exact_total(exact_sum(np.array([largest]), scale), scale) == pytest.approx(largest, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("size", [1, 500, 4999, 5000, 6000])
def test_the_limit_of_priorities(size):
    priority = row_priorities(0, 5000, 3)
    assert (priority <= np.uint64(priority_limit(5000, size, 3))).sum() == min(size, 5000)


def test_samples_add_up_to_those_of_smallest_priority():
    priority = row_priorities(0, 100, 0)
    samples = [RowSample(30, priority[i::4], np.arange(100)[i::4], np.ones(25), np.ones((25, 1))) for i in range(4)]
    chosen = (samples[0] + samples[1]) + (samples[2] + samples[3])
    assert_array_equal(np.sort(chosen.number), np.sort(np.argsort(priority)[:30]))
