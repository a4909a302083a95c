"""Shared by the tests of embeddings: a rolled sheet, and how far places are from the sheet after the best match."""

import numpy as np
import pytest
from scipy.spatial import procrustes
from sklearn.datasets import make_swiss_roll


@pytest.fixture(scope="session")
def roll():
    """(rows in space, their places on the sheet: length along the spiral, and height)."""
    X, t = make_swiss_roll(1000, random_state=0)
    length = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2  # of the spiral r = t, from its centre
    return X, np.column_stack([length, X[:, 1]])


@pytest.fixture(scope="session")
def distance_from():
    """Sum of squares left after the best shift, rotation and scale, of those of the truth."""
    return lambda truth, found: procrustes(truth, found)[2]


@pytest.fixture(scope="session")
def same_up_to_sign():
    def check(found, expected, **tolerance):
        signs = np.sign((found * expected).sum(axis=0))
        np.testing.assert_allclose(found * signs, expected, **tolerance)
        return signs

    return check
