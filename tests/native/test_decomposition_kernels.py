"""Kernels of independent components and of products with sparse rows: values, weights, threads, shapes."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import _native

kernels = _native.decomposition
FUNCTIONS = {
    0: (lambda y: np.log(np.cosh(1.5 * y)) / 1.5, lambda y: np.tanh(1.5 * y)),
    1: (lambda y: -np.exp(-y * y / 2), lambda y: y * np.exp(-y * y / 2)),
    2: (lambda y: y**4 / 4, lambda y: y**3),
    3: (lambda y: -np.log(np.exp(-y) / (1 + np.exp(-y)) ** 2), lambda y: np.tanh(y / 2)),
    4: (lambda y: np.hypot(y, 1.5), lambda y: y / np.hypot(y, 1.5)),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_contrasts(kind):
    rng = np.random.default_rng(kind)
    Y, w, h = rng.normal(size=(3, 700)) * 3, rng.uniform(0, 2, 700), 1e-6
    Y[0, :6] = [0.0, 1e-12, 0.05, -0.05, 0.0499, -8.0]
    F, g = FUNCTIONS[kind]
    G, slopes = Y.copy(), np.empty_like(Y)
    values, sums = kernels.contrast(G, w, kind, 1.5, True, slopes)
    assert_allclose(G, w * g(Y), rtol=1e-13, atol=1e-300)
    assert_allclose(values, F(Y) @ w, rtol=1e-11)
    assert_allclose(slopes, w * (g(Y + h) - g(Y - h)) / (2 * h), rtol=1e-6, atol=1e-7)
    assert_allclose(sums, slopes.sum(axis=1), rtol=1e-12)
    far = np.array([[800.0, -800.0, 1e200, -1e200, 1e-300]])
    if kind != 2:  # a cube of these is no number
        kernels.contrast(far, None, kind, 1.0, True, None)
        assert np.isfinite(far).all()


def test_products_with_sparse_rows():
    X = sp.random_array((400, 90), density=0.1, rng=0, format="csr")
    rng = np.random.default_rng(0)
    V, w, shift = rng.normal(size=(2, 90, 16)), rng.uniform(0, 2, 400), rng.normal(size=(2, 16))
    found = []
    for threads in (1, 2, 4):
        out, sums = np.zeros_like(V), np.zeros((2, 16))
        kernels.scatter_product(X, w, shift, V, out, sums, threads)
        found.append(out)
    for a in range(2):
        T = (X @ V[a] - shift[a]) * w[:, None]
        assert_allclose(found[0][a], X.T @ T, rtol=1e-10, atol=1e-12)
        assert_allclose(sums[a], T.sum(axis=0), rtol=1e-10, atol=1e-12)
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])
    single = np.zeros_like(V)
    kernels.scatter_product(X.astype(np.float32), None, shift * 0, V, single, np.zeros((2, 16)), 1)
    assert_allclose(single[1], X.T @ (X @ V[1]), rtol=1e-5, atol=1e-5)


def test_shapes_are_checked():
    Y = np.zeros((2, 5))
    for arguments in (
        (Y, np.ones(4), 0, 1.0, False, None),
        (Y, None, 5, 1.0, False, None),
        (Y, None, 0, 0.0, False, None),
        (Y, None, 0, 1.0, False, np.zeros((2, 4))),
    ):
        with pytest.raises(ValueError, match="contrast: expected"):
            kernels.contrast(*arguments)
    X, V = sp.csr_array(np.eye(3)), np.zeros((1, 3, 16))
    bad = sp.csr_array(np.eye(3))
    bad.indices = np.array([0, 1, 7], dtype=bad.indices.dtype)
    for rows, columns in ((X, np.zeros((1, 4, 16))), (X, np.zeros((1, 3, 8))), (bad, V)):
        with pytest.raises(ValueError, match="scatter_product: expected"):
            kernels.scatter_product(rows, None, np.zeros((1, 16)), columns, V, np.zeros((1, 16)), 1)
