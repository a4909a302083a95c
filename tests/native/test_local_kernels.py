"""The kernels of local regression against plain NumPy: radii, one column, several, and bad calls."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle import _native

WEIGHTS = [
    lambda d: np.where(d < 1, (1 - np.minimum(d, 1) ** 3) ** 3, 0),
    lambda d: np.where(d < 1, 1 - d**2, 0),
    lambda d: np.where(d < 1, (1 - d**2) ** 2, 0),
    lambda d: np.where(d < 1, (1 - d**2) ** 3, 0),
    lambda d: np.where(d < 1, 1 - d, 0),
    lambda d: np.where(d <= 1, 1.0, 0),
    lambda d: np.exp(-(d**2) / 2),
]


def reference(x, y, c, query, h, kernel, degree):
    """(value, own, squares) by least squares on the weighted rows."""
    V = (x - query) / h
    p = V.shape[1]
    k = WEIGHTS[kernel](np.linalg.norm(V, axis=1)) * c
    pairs = [V[:, i] * V[:, j] for i in range(p) for j in range(i + 1)] if degree == 2 else []
    P = np.column_stack([np.ones(len(V)), *(V.T if degree else []), *pairs])
    inverse = np.linalg.inv(P.T @ (k[:, None] * P))
    row = (inverse @ (P.T * k))[0]
    return row @ y, inverse[0, 0], np.sum(row**2 / c)


@settings(max_examples=60)
@given(
    n=st.integers(25, 120),
    p=st.integers(1, 3),
    degree=st.integers(0, 2),
    kernel=st.integers(0, 6),
    seed=st.integers(0, 99),
    threads=st.integers(1, 3),
)
def test_fits(n, p, degree, kernel, seed, threads):
    rng = np.random.default_rng(seed)
    x, y, c = rng.normal(size=(n, p)), rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    queries = rng.normal(size=(7, p)) * 0.5
    h = np.full(7, 2.0 if kernel == 6 else 6.0)
    if p == 1:
        order = np.argsort(x[:, 0])
        x, y, c = x[order], y[order], c[order]
        found = _native.local.line(x[:, 0].copy(), y, c, queries[:, 0].copy(), h, kernel, degree, True, threads)
    else:
        found = _native.local.space(x, y, c, queries, h, kernel, degree, True, threads)
    expected = np.array([reference(x, y, c, q, h[0], kernel, degree) for q in queries])
    for got, want in zip(found[:3], expected.T, strict=True):
        assert_allclose(got, want, rtol=1e-6, atol=1e-9)
    assert found[3].max() < 1e-10
    assert not found[4].any()


@pytest.mark.parametrize(("n", "p", "degree"), [(5, 8, 1), (14, 6, 2), (3, 2, 2), (1, 4, 2)])
def test_fewer_points_than_terms_have_the_smallest_slopes(n, p, degree):
    rng = np.random.default_rng(n)
    x, y, c = rng.normal(size=(n, p)), rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    query = rng.normal(size=(1, p)) * 0.3
    found = _native.local.space(x, y, c, query, np.array([6.0]), 6, degree, True, 1)
    V = (x - query) / 6.0
    k = WEIGHTS[6](np.linalg.norm(V, axis=1)) * c
    pairs = [V[:, i] * V[:, j] for i in range(p) for j in range(i + 1)] if degree == 2 else []
    P = np.column_stack([*V.T, *pairs])
    mean = k @ P / k.sum()
    # value(y) = mean of y - mean' slopes, slopes of least norm: linear in y
    slopes = np.linalg.pinv(np.sqrt(k)[:, None] * (P - mean), rcond=1e-7) * np.sqrt(k)
    row = k / k.sum() - (mean @ slopes) @ (np.eye(n) - np.outer(np.ones(n), k / k.sum()))
    assert_allclose(found[0], row @ y, rtol=1e-6)
    assert_allclose(found[2], np.sum(row**2 / c), rtol=1e-6)
    assert found[4][0] == 1  # flat in the other directions


@settings(max_examples=60)
@given(n=st.integers(1, 80), p=st.integers(1, 3), seed=st.integers(0, 99), weighted=st.booleans(), ties=st.booleans())
def test_radii(n, p, seed, weighted, ties):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, size=(n, p)) * 1.0 if ties else rng.normal(size=(n, p))
    w = rng.integers(1, 4, size=n) * 1.0 if weighted else np.ones(n)
    share = float(rng.integers(1, int(w.sum()) + 1))
    queries = np.concatenate([x[:3], rng.normal(size=(3, p)) * 3])
    if p == 1:
        order = np.argsort(x[:, 0], kind="stable")
        x, w = x[order], w[order]
        upto = np.append(0.0, np.cumsum(w)) if weighted else None
        found = _native.local.line_radii(x[:, 0].copy(), upto, queries[:, 0].copy(), share, 2)
    else:
        found = _native.local.space_radii(x, w, queries, share, 2)
    for q, radius in zip(queries, found, strict=True):
        d = np.linalg.norm(x - q, axis=1)
        order = np.argsort(d)
        expected = d[order][np.searchsorted(np.cumsum(w[order]), share)]
        assert radius == pytest.approx(expected, rel=1e-14, abs=1e-300)


def test_nothing_in_reach_and_no_weight():
    x, y = np.array([0.0, 1.0, 1.0, 5.0]), np.array([1.0, 2.0, 4.0, 9.0])
    far = np.array([-100.0, 100.0, 3.0])
    value, *_, status = _native.local.line(x, y, np.ones(4), far, np.full(3, 0.5), 0, 1, False, 1)
    assert value.tolist() == [1.0, 9.0, (2 + 4 + 9) / 3]
    assert status.tolist() == [2, 2, 2]
    c = np.array([0.0, 1.0, 1.0, 0.0])
    value = _native.local.line(x, y, c, far, np.full(3, 0.5), 0, 1, False, 1)[0]
    assert value.tolist() == [3.0, 3.0, 3.0]
    plane = np.column_stack([x, x])
    value = _native.local.space(plane, y, c, np.column_stack([far, far]), np.full(3, 0.5), 0, 1, False, 1)[0]
    assert value.tolist() == [3.0, 3.0, 3.0]
    assert np.isnan(_native.local.line(x, y, np.zeros(4), far, np.full(3, 0.5), 0, 1, False, 1)[0]).all()


def test_bad_calls():
    x, one = np.arange(4.0), np.ones(4)
    good = (x, one, one, x, one)
    for change in (
        (x[::-1].copy(), one, one, x, one),
        (x, one[:3], one, x, one),
        (x, one, one[:3], x, one),
        (x, one, one, x, one[:3]),
        (np.empty(0), np.empty(0), np.empty(0), x, one),
    ):
        with pytest.raises(ValueError, match=r"local\.line: expected"):
            _native.local.line(*change, 0, 1, False, 1)
    for kernel, degree, threads in ((7, 1, 1), (-1, 1, 1), (0, 3, 1), (0, 1, 0)):
        with pytest.raises(ValueError, match="local regression: expected"):
            _native.local.line(*good, kernel, degree, False, threads)
    with pytest.raises(ValueError, match=r"local\.line_radii"):
        _native.local.line_radii(x, one, x, 2.0, 1)
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match=r"local\.space: expected"):
        _native.local.space(X, one, one, np.ones((3, 1)), np.ones(3), 0, 1, False, 1)
    with pytest.raises(ValueError, match=r"local\.space_radii"):
        _native.local.space_radii(X, one[:3], X, 2.0, 1)
