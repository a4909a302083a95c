"""The kernels of the robust regressions, against NumPy, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from epicycle import _native


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(700, 5)), rng.normal(size=700), rng.uniform(0, 2, size=700), rng.normal(size=5)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shifted_products(rows, order, dtype):
    X, y, _, shift = rows
    X = np.asarray(X, dtype=dtype, order=order)
    A = np.column_stack([X - shift, np.ones(len(X))])
    v = np.arange(6.0)
    assert_allclose(_native.linear.shifted_product(X, shift, v[:5], v[5]), A @ v, rtol=1e-12, atol=1e-12)
    assert_allclose(_native.linear.shifted_sums(X, shift, y), A.T @ y, rtol=1e-10, atol=1e-10)
    assert_allclose(_native.linear.shifted_product(X[::-2], shift, v[:5], v[5]), (A @ v)[::-2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_huber_sums(rows, weighted, index):
    X, y, weight, shift = rows
    coef, b, limit = np.arange(5.0) / 5, 0.3, 1.2
    S = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    w = weight if weighted else None
    s = weight if weighted else np.ones(700)
    for got, A in (
        (_native.linear.huber_sums(X, y, w, shift, coef, b, limit), X - shift),
        (_native.linear.huber_sums(S, y, w, np.zeros(5), coef, b, limit), S.toarray()),
    ):
        r = y - A @ coef - b
        inside = np.abs(r) <= limit
        Z = np.column_stack([A, np.ones(700), r])
        M, o, total, away, far, count, largest = got
        assert_allclose(M, (Z * (s * inside)[:, None]).T @ Z, atol=1e-10)
        assert_allclose(o, Z[:, :6].T @ (s * ~inside * np.sign(r)), atol=1e-10)
        assert_allclose(
            [total, away, far, count, largest],
            [
                s.sum(),
                s[~inside].sum(),
                s[~inside] @ np.abs(r[~inside]),
                (~inside & (s > 0)).sum(),
                np.abs(r[inside]).max(),
            ],
        )


def pivot_arguments(n=30, p=2):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p))
    d = p + 1
    basis = np.arange(d)
    B = np.column_stack([X[:d], np.ones(d)])
    half = np.full(n, 0.5)
    return {
        "X": X,
        "shift": np.zeros(p),
        "inv_scale": np.ones(p),
        "y": rng.normal(size=n),
        "upper": half,
        "lower": half,
        "penalty": np.zeros(d),
        "g": np.zeros(d),
        "g2": np.zeros(d),
        "basis": basis,
        "inverse": np.ascontiguousarray(np.linalg.inv(B)),
        "max_pivots": 1000,
    }


def pivot(basis, inverse, max_pivots, X, **programme):
    programme = _native.linear.QuantileProgramme(**programme)
    return _native.linear.quantile_pivots(X, programme, basis, inverse, max_pivots)


def test_pivots_end_at_a_proven_vertex():
    a = pivot_arguments()
    state, pivots, beta, residual, dual = pivot(**a)
    assert state == 0
    assert pivots > 0
    A = np.column_stack([a["X"], np.ones(30)])
    assert_allclose(a["y"] - A @ beta, residual, atol=1e-12)
    assert_allclose(A.T @ dual[:30], 0, atol=1e-12)
    assert (np.abs(dual[:30]) <= 0.5).all()
    assert_allclose(dual[:30] @ a["y"], np.abs(residual).sum() / 2)
    again = pivot(**a)
    assert again[:2] == (0, 0)


def test_pivots_can_be_cut_short():
    a = pivot_arguments()
    state, pivots, *_ = pivot(**{**a, "max_pivots": 1})
    assert (state, pivots) == (1, 1)


def test_an_unbounded_programme_is_said():
    a = pivot_arguments()
    state, *_ = pivot(**{**a, "g": np.array([0.0, 0.0, 100.0])})
    assert state == 3


@pytest.mark.parametrize(
    "change",
    [
        {"y": np.zeros(29)},
        {"upper": np.zeros(31)},
        {"penalty": np.zeros(2)},
        {"basis": np.array([0, 0, 1])},
        {"basis": np.array([0, 1, 33])},
        {"basis": np.array([0, 1, -1])},
        {"inverse": np.zeros((2, 2))},
        {"shift": np.zeros(3)},
        {"inv_scale": np.zeros(1)},
    ],
)
def test_bad_arrays_are_refused(change):
    with pytest.raises(ValueError, match="quantile_pivots: expected"):
        pivot(**{**pivot_arguments(), **change})


def test_bad_sparse_arrays_are_refused():
    X = sp.csr_array(np.eye(1, 2))
    X.indices[0] = 7
    with pytest.raises(ValueError, match="huber_sums: expected"):
        _native.linear.huber_sums(X, np.ones(1), None, np.zeros(2), np.ones(2), 0.0, 1.0)
    with pytest.raises(ValueError, match="shifted_product: expected"):
        _native.linear.shifted_product(np.ones((3, 2)), np.ones(2), np.ones(3), 0.0)
    with pytest.raises(ValueError, match="shifted_sums: expected"):
        _native.linear.shifted_sums(np.ones((3, 2)), np.ones(2), np.ones(2))
