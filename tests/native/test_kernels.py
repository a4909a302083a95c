"""The compiled kernels against plain NumPy, over memory layouts, types and bad calls."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from epicycle import _native


def layouts(X):
    """The same matrix in every layout a caller may have."""
    wide = np.empty((X.shape[0] * 2, X.shape[1] * 3), X.dtype)
    wide[::2, ::3] = X
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": wide[::2, ::3],
        "reversed": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "padded rows": np.hstack([X, X])[:, : X.shape[1]],
    }


def problem(n, p, k, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) + 2).astype(dtype)
    Y = rng.standard_normal((n, k))
    return X, Y, rng.random(n), rng.standard_normal(p + k)


def reference_moments(X, Y, weight, shift):
    Z = np.column_stack([X.astype(np.float64) - shift[: X.shape[1]], Y - shift[X.shape[1] :], np.ones(len(X))])
    return Z.T @ (Z if weight is None else weight[:, None] * Z)


@settings(max_examples=60)
@given(
    n=st.integers(0, 600),
    p=st.integers(0, 40),
    k=st.integers(0, 3),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_moments_of_any_shape(n, p, k, seed, dtype, weighted):
    X, Y, weight, shift = problem(n, p, k, seed, dtype)
    weight = weight if weighted else None
    expected = reference_moments(X, Y, weight, shift)
    for name, layout in layouts(X).items():
        M = _native.core.moments(layout, Y, weight, shift)
        np.testing.assert_allclose(M, expected, rtol=1e-12, atol=1e-12 * (1 + n), err_msg=name)
        assert np.array_equal(M, M.T)


def reference_logistic(X, y, weight, shift, coef, intercept):
    Z = np.column_stack([X.astype(np.float64) - shift, np.ones(len(X))])
    z = Z @ np.append(coef, intercept)
    p = 1 / (1 + np.exp(-z))
    w = np.ones(len(X)) if weight is None else weight
    loss = w @ (np.logaddexp(0, z) - y * z)
    return loss, Z.T @ (w * (p - y)), Z.T @ ((w * p * (1 - p))[:, None] * Z)


@settings(max_examples=60)
@given(
    n=st.integers(1, 600),
    p=st.integers(0, 40),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_logistic_of_any_shape(n, p, seed, dtype, weighted):
    X, _, weight, shift = problem(n, p, 0, seed, dtype)
    rng = np.random.default_rng(seed + 1000)
    y, coef, weight = (rng.random(n) < 0.4).astype(float), rng.standard_normal(p) * 0.3, weight if weighted else None
    loss, gradient, hessian = reference_logistic(X, y, weight, shift, coef, 0.3)
    close = {"rtol": 1e-11, "atol": 1e-11 * n}
    for layout in layouts(X).values():
        value, g, curvature = _native.linear.logistic_gradient(layout, y, weight, shift, coef, 0.3)
        np.testing.assert_allclose(value, loss, rtol=1e-12)
        np.testing.assert_allclose(g, gradient, **close)
        np.testing.assert_allclose(curvature, hessian[-1, -1], rtol=1e-11)
        value, g, H = _native.linear.logistic_hessian(layout, y, weight, shift, coef, 0.3)
        np.testing.assert_allclose(value, loss, rtol=1e-12)
        np.testing.assert_allclose(g, gradient, **close)
        np.testing.assert_allclose(H, hessian, **close)


@settings(max_examples=60)
@given(
    n=st.integers(1, 300),
    p=st.integers(0, 40),
    K=st.integers(1, 40),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_multinomial_of_any_shape(n, p, K, seed, dtype, weighted):
    X, _, weight, shift = problem(n, p, 0, seed, dtype)
    rng = np.random.default_rng(seed + 2000)
    y, params, w = rng.integers(0, K, n), rng.standard_normal((K, p + 1)), weight if weighted else np.ones(n)
    Z = np.column_stack([X.astype(np.float64) - shift, np.ones(n)])
    z = Z @ params.T
    log_p = z - np.logaddexp.reduce(z, axis=1)[:, None]
    P = np.exp(log_p)
    R = w[:, None] * (P - np.eye(K)[y])
    in_b = np.diag(w @ P) - P.T @ (w[:, None] * P)
    for layout in layouts(X).values():
        loss, g, H = _native.linear.multinomial_gradient(layout, y, weight if weighted else None, shift, params, True)
        np.testing.assert_allclose(loss, -w @ log_p[np.arange(n), y], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(g, R.T @ Z, rtol=1e-10, atol=1e-11 * n)
        np.testing.assert_allclose(H, in_b, rtol=1e-10, atol=1e-12 * n)
        plain = _native.linear.multinomial_gradient(layout, y, weight if weighted else None, shift, params, False)
        assert plain[0] == loss
        assert np.array_equal(plain[1], g)
        assert not plain[2].any()


def test_multinomial_far_out():
    X, y = np.array([[1.0]]), np.array([2])
    params = np.array([[1e4, 0.0], [-1e4, 0.0], [1e4 - 1, 0.0]])
    loss, g, _ = _native.linear.multinomial_gradient(X, y, None, np.zeros(1), params, False)
    np.testing.assert_allclose(loss, np.log1p(np.e), rtol=1e-15)
    np.testing.assert_allclose(g[:, 0], [np.e / (1 + np.e), 0.0, 1 / (1 + np.e) - 1], rtol=1e-15)


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_out_of_range_are_refused(label):
    with pytest.raises(ValueError, match="multinomial"):
        _native.linear.multinomial_gradient(
            np.zeros((2, 1)), np.array([0, label]), None, np.zeros(1), np.zeros((3, 2)), True
        )


@pytest.mark.parametrize("z", [0.0, 1e-9, 1.0, 30.0, 40.0, 700.0, 707.9, 708.1, 1e4, 1e300])
def test_logistic_far_out(z):
    """Loss, residual and curvature at single margins of either sign, against formulas that do not cancel."""
    X, none = np.array([[1.0]]), np.zeros(1)
    for y in (0.0, 1.0):
        for sign in (-1.0, 1.0):
            loss, g, curvature = _native.linear.logistic_gradient(
                X, np.array([y]), None, none, np.array([sign * z]), 0.0
            )
            margin = (2 * y - 1) * sign * z
            wrong = np.exp(-np.logaddexp(0, margin))
            np.testing.assert_allclose(loss, np.logaddexp(0, -margin), rtol=4e-16, atol=1e-307)
            np.testing.assert_allclose(g[0], -(2 * y - 1) * wrong, rtol=1e-13, atol=1e-307)
            right = np.exp(-np.logaddexp(0, -margin))
            np.testing.assert_allclose(curvature, wrong * right, rtol=1e-12, atol=1e-306)
            _, gradient, H = _native.linear.logistic_hessian(X, np.array([y]), None, none, np.array([sign * z]), 0.0)
            np.testing.assert_allclose(gradient, g, rtol=1e-12, atol=1e-90)
            assert np.isfinite(H).all()


@settings(max_examples=40)
@given(
    n=st.integers(1, 80),
    p=st.integers(1, 30),
    seed=st.integers(0, 99),
    density=st.sampled_from([0.0, 0.1, 0.6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    index=st.sampled_from([np.int32, np.int64]),
)
def test_sparse_equals_dense(n, p, seed, density, dtype, index):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=density, rng=rng, dtype=np.float64, format="csr").astype(dtype)
    X.indices, X.indptr, none = X.indices.astype(index), X.indptr.astype(index), np.zeros(p)
    Y, weight, y, coef = rng.standard_normal((n, 2)), rng.random(n), (rng.random(n) < 0.5) * 1.0, rng.standard_normal(p)
    shift = np.append(none, [0.5, -1.0])
    expected = reference_moments(X.toarray(), Y, weight, shift)
    np.testing.assert_allclose(_native.core.moments(X, Y, weight, shift), expected, rtol=1e-12, atol=1e-12)
    loss, g, H = reference_logistic(X.toarray(), y, weight, np.zeros(p), coef, -0.2)
    value, gradient, curvature = _native.linear.logistic_gradient(X, y, weight, none, coef, -0.2)
    np.testing.assert_allclose(value, loss, rtol=1e-12)
    np.testing.assert_allclose(gradient, g, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(curvature, H[-1, -1], rtol=1e-11)
    value, gradient, hessian = _native.linear.logistic_hessian(X, y, weight, none, coef, -0.2)
    np.testing.assert_allclose(gradient, g, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(hessian, H, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_all_finite_sees_every_place(dtype, bad):
    X = np.zeros((7, 19), dtype)
    X[0, 0] = np.finfo(dtype).max  # large is not infinite, even where a sum of it would be
    X[1] = np.finfo(dtype).max
    for name, layout in layouts(X).items():
        assert _native.core.all_finite(layout), name
    for place in np.ndindex(X.shape):
        Z = X.copy()
        Z[place] = bad
        for name, layout in layouts(Z).items():
            assert not _native.core.all_finite(layout), (name, place)
    assert _native.core.all_finite(np.empty((0, 3), dtype))
    assert _native.core.all_finite(np.empty((3, 0), dtype))


def broken(name, change):
    X = sp.csr_array(np.arange(12.0).reshape(4, 3))
    setattr(X, name, change(getattr(X, name).copy()))
    return X


def set_item(index, value):
    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    "X",
    [
        broken("indices", set_item(0, -1)),  # a column before the first
        broken("indices", set_item(0, 3)),  # a column after the last
        broken("indptr", set_item(-1, 10_000)),  # rows beyond the stored entries
        broken("indptr", set_item(0, -2)),
        broken("indptr", set_item(1, 9)),  # a row that ends before it begins
        broken("indices", lambda a: a[:-1]),
        broken("indptr", lambda a: a[:0]),
    ],
)
def test_malformed_sparse_matrices_are_refused(X):
    four, none = np.ones(4), np.zeros(3)
    with pytest.raises(ValueError, match="logistic"):
        _native.linear.logistic_gradient(X, four, None, none, none, 0.0)
    with pytest.raises(ValueError, match="moments"):
        _native.core.moments(X, np.zeros((4, 1)), None, np.zeros(4))


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (_native.core.moments, (np.zeros((4, 2)), np.zeros((3, 1)), None, np.zeros(3))),
        (_native.core.moments, (np.zeros((4, 2)), np.zeros((4, 1)), np.zeros(3), np.zeros(3))),
        (_native.core.moments, (np.zeros((4, 2)), np.zeros((4, 1)), None, np.zeros(2))),
        (_native.linear.logistic_gradient, (np.zeros((4, 2)), np.zeros(3), None, np.zeros(2), np.zeros(2), 0.0)),
        (_native.linear.logistic_gradient, (np.zeros((4, 2)), np.zeros(4), np.zeros(5), np.zeros(2), np.zeros(2), 0.0)),
        (_native.linear.logistic_hessian, (np.zeros((4, 2)), np.zeros(4), None, np.zeros(1), np.zeros(2), 0.0)),
        (_native.linear.logistic_hessian, (np.zeros((4, 2)), np.zeros(4), None, np.zeros(2), np.zeros(3), 0.0)),
    ],
)
def test_wrong_shapes_are_refused(kernel, arguments):
    with pytest.raises(ValueError, match=kernel.__name__.split("_")[0]):
        kernel(*arguments)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError):
        _native.core.moments(np.zeros((4, 2), dtype=np.int64), np.zeros((4, 1)), None, np.zeros(3))
    with pytest.raises(TypeError):
        _native.core.all_finite([[1.0]])


def test_same_block_same_bits():
    X, Y, weight, shift = problem(1000, 33, 1, 0)
    first = _native.core.moments(X, Y, weight, shift)
    assert all(np.array_equal(first, _native.core.moments(X, Y, weight, shift)) for _ in range(3))
    # what was computed before in this thread leaves no trace
    _native.core.moments(np.full((300, 90), 1e300), np.zeros((300, 0)), None, np.zeros(90))
    assert np.array_equal(first, _native.core.moments(X, Y, weight, shift))


def test_facts_about_the_build():
    assert _native.core.max_threads() >= 1
    assert _native.core.instruction_set() in {"avx512", "avx2", "baseline"}
