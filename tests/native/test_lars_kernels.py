"""The kernels of least angle and stagewise regression against plain NumPy, and bad calls."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import _native


def gram(n, k, seed):
    A = np.random.default_rng(seed).standard_normal((n, k))
    return A.T @ A


@settings(max_examples=60)
@given(k=st.integers(1, 70), seed=st.integers(0, 99), data=st.data())
def test_columns_come_and_go(k, seed, data):
    """Whatever comes and goes, the factor is that of the columns that are there, and solves with it."""
    G = gram(3 * k, k, seed)
    L, there = np.zeros((k + 1, k + 1)), []
    for j in range(k):
        left = _native.linear.cholesky_append(L, len(there), np.ascontiguousarray(G[j, there]), G[j, j], 1e-12)
        assert left > 0
        there.append(j)
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            i = data.draw(st.integers(0, len(there) - 1))
            _native.linear.cholesky_remove(L, len(there), i)
            del there[i]
    m = len(there)
    expected = np.linalg.cholesky(G[np.ix_(there, there)])
    assert_allclose(np.tril(L[:m, :m]), expected, rtol=1e-9, atol=1e-9)
    b = np.random.default_rng(seed).standard_normal(m)
    x = b.copy()
    _native.linear.cholesky_solve(L, x)
    assert_allclose(G[np.ix_(there, there)] @ x, b, rtol=1e-8, atol=1e-8)


def test_a_dependent_column_is_left_out():
    G = gram(20, 4, 0)
    L = np.zeros((5, 5))
    for j in range(4):
        _native.linear.cholesky_append(L, j, np.ascontiguousarray(G[j, :j]), G[j, j], 0.0)
    mix = np.array([1.0, -2.0, 0.5, 0.0])
    assert abs(_native.linear.cholesky_append(L, 4, G @ mix, mix @ G @ mix, 1e-10)) < 1e-10
    assert L[4, 4] == 0.0


def reference(G, row, square, step, share, level, q, w, budget):
    codes = []
    while len(codes) < budget:
        j = int(np.argmax(np.abs(q)))
        if abs(q[j]) <= level or row[j] < 0:
            break
        d = step * q[j] / square[j] if share else step * np.sign(q[j])
        if d * (q[j] - d * square[j] / 2) <= 0:
            break
        w[j] += d
        q -= d * G[row[j]]
        codes.append((j + 1) * int(np.sign(d)))
    return codes


@settings(max_examples=60)
@given(p=st.integers(1, 60), seed=st.integers(0, 99), share=st.booleans(), level=st.sampled_from([0.0, 0.3]))
def test_stagewise_moves(p, seed, share, level):
    G = gram(2 * p + 3, p, seed) / (2 * p + 3)
    q0 = np.random.default_rng(seed).standard_normal(p)
    square, row = np.diagonal(G).copy(), np.arange(p)
    row[p // 2] = -1  # not known
    step = 0.2 if share else 0.05
    q, w, ways = q0.copy(), np.zeros(p), np.zeros(p, np.uint8)
    codes, sizes, gained = [], [], 0.0
    while len(codes) < 50:
        room, amounts = np.zeros(50 - len(codes), np.int32), np.zeros(50 - len(codes))
        made, end, j, gain = _native.linear.stagewise(G, row, square, step, share, level, q, w, ways, room, amounts)
        codes += room[:made].tolist()
        sizes += amounts[:made].tolist()
        gained += gain
        if end != 4:
            break
        assert j == abs(codes[-1]) - 1
    assert end in (0, 1, 2, 3) or len(codes) == 50
    if end == 3:
        assert row[j] < 0
    wanted_q, wanted_w = q0.copy(), np.zeros(p)
    assert codes == reference(G, row, square, step, share, level, wanted_q, wanted_w, 50)
    assert_allclose(q, wanted_q, atol=1e-12)
    assert_allclose(w, wanted_w, atol=1e-12)
    assert_allclose(np.bincount(np.abs(np.array(codes, int)) - 1, sizes, p) if codes else np.zeros(p), w, atol=1e-12)
    loss = lambda v: v @ G @ v / 2 - q0 @ v  # noqa: E731
    assert_allclose(gained, -loss(w), atol=1e-10)
    assert_array_equal(ways > 0, np.isin(np.arange(1, p + 1), np.abs(codes)))


def test_bad_calls():
    L, G, one, rows = np.zeros((3, 3)), np.eye(2), np.ones(2), np.arange(2)
    moves, ways = np.zeros(4, np.int32), np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match="cholesky_append"):
        _native.linear.cholesky_append(L, 3, np.ones(3), 1.0, 0.0)
    with pytest.raises(ValueError, match="cholesky_append"):
        _native.linear.cholesky_append(L, 1, np.ones(2), 1.0, 0.0)
    with pytest.raises(ValueError, match="cholesky_append"):
        _native.linear.cholesky_append(L, 1, np.ones(1), 1.0, np.nan)
    with pytest.raises(ValueError, match="cholesky_remove"):
        _native.linear.cholesky_remove(L, 2, 2)
    with pytest.raises(ValueError, match="cholesky_solve"):
        _native.linear.cholesky_solve(L, np.ones(4))
    with pytest.raises(TypeError):
        _native.linear.cholesky_solve(L.astype(np.float32), one)
    with pytest.raises(ValueError, match="stagewise"):
        _native.linear.stagewise(G, rows + 1, one, 0.1, False, 0.0, one.copy(), one.copy(), ways, moves, None)
    with pytest.raises(ValueError, match="stagewise"):
        _native.linear.stagewise(G, rows, one, 0.0, False, 0.0, one.copy(), one.copy(), ways, moves, None)
    with pytest.raises(ValueError, match="stagewise"):
        _native.linear.stagewise(G, rows, one, 0.1, False, 0.0, one.copy(), one.copy(), ways, moves, np.ones(3))
    with pytest.raises(ValueError, match="stagewise"):
        _native.linear.stagewise(G, rows[:1].copy(), one, 0.1, False, 0.0, one.copy(), one.copy(), ways, moves, None)
