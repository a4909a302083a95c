"""The compiled parts of L1 logistic regression, each against a few lines of NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import rel_entr

from epicycle import _native


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 700
    z = rng.normal(size=n) * 5
    y = rng.integers(0, 2, n).astype(float)
    v = rng.uniform(size=n)
    return z, y, v / v.sum()


def test_residuals(rows):
    z, y, v = rows
    u = np.empty_like(z)
    loss = _native.linear.logistic_residual(z, y, v, u)
    p = 1 / (1 + np.exp(-z))
    assert loss == pytest.approx(v @ (np.logaddexp(0, z) - y * z), rel=1e-13)
    assert_allclose(u, v * (y - p), rtol=1e-9, atol=1e-18)
    with pytest.raises(ValueError, match="logistic_residual"):
        _native.linear.logistic_residual(z[1:], y, v, u)


def test_divergence(rows):
    z, _, v = rows
    rng = np.random.default_rng(1)
    for factor in (rng.uniform(size=len(z)), np.full(len(z), 1 - 1e-9), np.zeros(len(z)), np.ones(len(z))):
        q = 1 / (1 + np.exp(z))
        k = factor * q
        plain = rel_entr(k, q) + rel_entr(1 - k, 1 - q)
        assert _native.linear.coin_divergence(z, v, factor) == pytest.approx(v @ plain, rel=1e-6, abs=1e-16)
    extreme = np.array([-1e4, 1e4, -720.0, 720.0])
    assert np.isfinite(_native.linear.coin_divergence(extreme, np.ones(4), np.full(4, 0.5)))
    assert _native.linear.coin_divergence(np.array([-1e4]), np.ones(1), np.array([0.5])) == pytest.approx(5e3, rel=1e-3)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_curvature(index, dtype):
    rng = np.random.default_rng(2)
    n, p, K = 50, 6, 3
    X = sp.random_array((n, p), density=0.4, rng=rng, format="csr", dtype=np.float64).astype(dtype)
    P = rng.dirichlet(np.ones(K), size=n)
    w = rng.uniform(size=n)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    H = _native.linear.multinomial_curvature(X, w, P)
    X1 = np.column_stack([X.toarray().astype(float), np.ones(n)])
    plain = sum(w[i] * np.kron(np.diag(P[i]) - np.outer(P[i], P[i]), np.outer(X1[i], X1[i])) for i in range(n))
    assert_allclose(H, plain, atol=1e-12)
    with pytest.raises(ValueError, match="multinomial_curvature"):
        _native.linear.multinomial_curvature(X, w, P[1:])
    X.indices += 9
    with pytest.raises(ValueError, match="multinomial_curvature"):
        _native.linear.multinomial_curvature(X, w, P)


@pytest.mark.parametrize("form", ["dense", "csc"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_descent_reaches_its_gap(form, intercept, l2, dtype):
    rng = np.random.default_rng(3)
    n, p, k = 300, 20, 12
    X = (rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.5) + 0.3 * (form == "dense")).astype(dtype)
    y = (X[:, :3].sum(axis=1) + rng.logistic(size=n) > 0.5).astype(float)
    v = rng.uniform(size=n)
    v /= v.sum()
    columns = np.sort(rng.choice(p, k, replace=False))
    w, z, l1 = np.zeros(k), np.zeros(n), 0.01
    centre = (v @ X[:, columns].astype(float)) if intercept else np.zeros(k)
    penalty = _native.linear.Penalty(np.full(k, l1), np.full(k, l2))
    budget = _native.linear.Budget(rounds=50, target=1e-11, work=1e12)
    steps, gap, moved = _native.linear.logistic_descend(
        sp.csc_array(X) if form == "csc" else np.asfortranarray(X),
        columns,
        y,
        v,
        penalty,
        intercept,
        centre,
        w,
        z,
        budget,
    )
    assert 0 < steps < 50
    assert gap <= 1e-11
    A = X[:, columns].astype(float)
    assert_allclose(z, moved + (A - centre) @ w, atol=1e-10)
    r = v * (y - 1 / (1 + np.exp(-z)))
    c = A.T @ r
    assert (np.abs(c[w == 0]) <= l1 + 1e-6).all()
    assert_allclose(c[w != 0], l1 * np.sign(w[w != 0]) + l2 * w[w != 0], atol=1e-6)
    assert abs(r.sum()) < 1e-6 or not intercept


def test_descent_checks_its_arguments():
    X = np.asfortranarray(np.ones((5, 3)))
    one, ones = np.ones(1), np.ones(5)

    def call(X=X, columns=(0,), y=ones, z=None, w=None):
        z, w = ones.copy() if z is None else z, one.copy() if w is None else w
        penalty, budget = _native.linear.Penalty(one, one), _native.linear.Budget(rounds=1, target=1.0, work=1.0)
        return _native.linear.logistic_descend(X, np.array(columns), y, ones / 5, penalty, True, one, w, z, budget)

    call()
    for bad in (
        {"X": np.ascontiguousarray(np.ones((5, 3)))},
        {"columns": (3,)},
        {"columns": (-1,)},
        {"y": np.ones(4)},
        {"z": np.ones(6)},
        {"w": np.ones(2)},
    ):
        with pytest.raises(ValueError, match="logistic_descend"):
            call(**bad)
    S = sp.csc_array(X)
    S.indices = S.indices + np.int32(10)
    with pytest.raises(ValueError, match="well-formed"):
        call(X=S)
