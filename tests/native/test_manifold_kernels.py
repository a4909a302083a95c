"""Kernels of embeddings: refusals at the boundary; what they compute is tested with the methods that call them."""

import numpy as np
import pytest

from epicycle._native import manifold

START, INDEX, LENGTH = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), np.array([1.0, 2.0])
X, D = np.arange(6.0).reshape(3, 2), np.ones((3, 3))
FIRST, SECOND, GROUP = np.array([0, 1], dtype=np.int32), np.array([1, 2], dtype=np.int32), np.array([0, 1, 2])


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("shortest_paths", (np.array([0, 2, 1]), INDEX, LENGTH, START[:1], 1)),
        ("shortest_paths", (START, INDEX + 1, LENGTH, START[:1], 1)),
        ("shortest_paths", (START, INDEX, -LENGTH, START[:1], 1)),
        ("shortest_paths", (START, INDEX, LENGTH * np.nan, START[:1], 1)),
        ("shortest_paths", (START, INDEX, LENGTH, np.array([2]), 1)),
        ("shortest_paths", (START, INDEX, LENGTH, START[:1], 0)),
        ("compare_neighborhoods", (D, D[:2], np.arange(3), 1, 1)),
        ("compare_neighborhoods", (D, D, np.array([0, 1, 3]), 1, 1)),
        ("compare_neighborhoods", (D, D, np.arange(3), 3, 1)),
        ("guttman", (X, D[:2], None, 1)),
        ("guttman", (X, D, D[:, :2].copy(), 1)),
        ("monotone_disparities", (X, FIRST + 2, SECOND, None, GROUP, D.copy())),
        ("monotone_disparities", (X, FIRST, SECOND, np.ones(3), GROUP, D.copy())),
        ("monotone_disparities", (X, FIRST, SECOND, None, np.array([0, 3, 2]), D.copy())),
    ],
)
def test_what_does_not_fit_is_refused(kernel, arguments):
    with pytest.raises(ValueError, match=f"{kernel}|threads"):
        getattr(manifold, kernel)(*arguments)


def test_the_least_that_there_is():
    assert manifold.shortest_paths(np.zeros(2, dtype=np.int64), INDEX[:0], LENGTH[:0], START[:1], 1).tolist() == [[0.0]]
    assert manifold.compare_neighborhoods(D[:, :2].copy(), D[:, :2].copy(), START[[0, 1, 0]], 1, 1).shape == (3, 3)
    assert manifold.monotone_disparities(X, FIRST[:0], SECOND[:0], None, START[:1], D.copy()) == 0.0
