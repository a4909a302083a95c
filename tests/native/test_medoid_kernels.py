"""Swaps of medoids and BUILD: against loops in Python, for one and two threads, and refusals at the boundary."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist

from epicycle._native import cluster


def cost(D, medoids, weight=1.0):
    return float((D[:, medoids].min(axis=1) * weight).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pass_is_a_loop_over_swaps(dtype):
    rng = np.random.default_rng(1)
    for n, k in ((40, 1), (40, 4), (70, 9)):
        D = cdist(*[rng.normal(size=(n, 3))] * 2).astype(dtype)
        weight = rng.uniform(0.5, 2, n)
        expected = list(range(k))
        for x in range(n):  # the first swap that helps, as soon as it is found
            now = cost(D.T, expected, weight)
            after = [cost(D.T, [*expected[:i], x, *expected[i + 1 :]], weight) for i in range(k)]
            if x not in expected and min(after) < now * (1 - 1e-12):
                expected[int(np.argmin(after))] = x
        for threads in (1, 2):
            medoids = np.arange(k)
            swaps, last, value, _ = cluster.swap_medoids(D, weight, medoids, n, threads)
            assert_array_equal(medoids, expected)
            assert value == pytest.approx(cost(D.T, expected, weight))
            assert swaps > 0
            assert last <= n


def test_build_takes_the_best_row_each_time():
    rng = np.random.default_rng(2)
    D, weight = cdist(*[rng.normal(size=(30, 2))] * 2), rng.uniform(0.5, 2, 30)
    chosen = []
    for _ in range(4):
        left = [x for x in range(30) if x not in chosen]
        chosen.append(min(left, key=lambda x: cost(D, [*chosen, x], weight)))
    medoids = np.zeros(4, dtype=np.int64)
    cluster.build_medoids(D, weight, medoids, 2)
    assert_array_equal(medoids, chosen)
    for arguments in (
        (D[:, :3].copy(), None, medoids, 0, 1),
        (D, None, np.array([1, 1]), 0, 1),
        (D, None, medoids + 40, 0, 1),
    ):
        with pytest.raises(ValueError, match="swap_medoids: expected"):
            cluster.swap_medoids(*arguments)
