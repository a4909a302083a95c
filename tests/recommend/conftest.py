"""Ratings with a planted structure, shared by the tests of recommenders."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def ratings():
    """900 ratings of 40 users for 30 items: pairs (900, 2), no pair twice, and values."""
    rng = np.random.default_rng(0)
    at = rng.permutation(40 * 30)[:900]
    pairs = np.column_stack([at // 30, at % 30])
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    bias = rng.normal(size=40)
    value = 3 + bias[pairs[:, 0]] + np.sum(x[pairs[:, 0]] * y[pairs[:, 1]], axis=1) + 0.3 * rng.normal(size=900)
    return pairs, value
