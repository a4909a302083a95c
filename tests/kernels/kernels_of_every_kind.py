"""Kernels of every kind, alone and composed, and rows for them."""

import numpy as np
import pytest

from epicycle.kernel import (
    NNGP,
    ArcCosine,
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    NeuralTangent,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scaled,
)

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(30, 3)), RNG.normal(size=(17, 3))
HISTOGRAMS = np.abs(X)
STRINGS = ["gattaca", "tagaca", "ccc", "", "gatgat", "a"]

VECTORS = [
    Linear(),
    Polynomial(2),
    Polynomial(3, gamma=0.5, c=0.0),
    Gaussian(0.8),
    Gaussian((0.5, 1.0, 2.0)),
    Laplacian(1.5),
    Laplacian((0.5, 1.0, 2.0)),
    Matern(0.7, nu=0.5),
    Matern((0.5, 1.0, 2.0), nu=0.5),
    Matern(0.7, nu=1.5),
    Matern((0.5, 1.0, 2.0), nu=1.5),
    Matern(0.7, nu=2.5),
    Matern((0.5, 1.0, 2.0), nu=2.5),
    RationalQuadratic(0.9, alpha=0.7),
    RationalQuadratic((0.5, 1.0, 2.0), alpha=2.0),
    Periodic(0.8, period=1.7),
    ArcCosine(0),
    ArcCosine(1, 3),
    ArcCosine(2, 2),
    NNGP(3, 1.5, 0.2),
    NeuralTangent(1),
    NeuralTangent(3, 1.8, 0.3),
    Constant(2.0),
]
COMPOSED = [
    2.0 * Gaussian(0.8) + 0.5,
    (Linear() + 1.0) ** 3,
    Gaussian(2.0) * Periodic(1.0, period=2.0) + 0.3 * Matern((1.0, 2.0, 3.0), nu=2.5),
    (Polynomial(2) + RationalQuadratic()).normalized(),
    3.0 * (NNGP(2, bias_variance=0.1) * Laplacian(2.0)),
    Gaussian(0.9) ** 2 * Scaled(Linear(), 0.7, bounds="fixed"),
]
every = pytest.mark.parametrize("kernel", [*VECTORS, *COMPOSED], ids=repr)
