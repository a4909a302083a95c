"""Shared by the tests of the contract: one small problem, and the toy estimator allowed in model files."""

import numpy as np
import pytest
from gradient_toy import GradientRidge

from epicycle import io

io.register(GradientRidge, "tests.GradientRidge")


@pytest.fixture(scope="session")
def problem():
    """200 x 4, well conditioned, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    return X, X @ [1.0, -2.0, 3.0, 0.5] + rng.normal(size=200)
