"""Sequential minimal optimisation and its helpers, against brute force in NumPy, over types, sizes and bad calls."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle import _native


def problem(n, seed, *, groups=1, epsilon=0.0, ridge=False):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, max(2, n // 2)))
    K = A @ A.T / n
    lo, hi = -rng.uniform(0, 2, n), rng.uniform(0, 2, n)
    return {
        "K": K,
        "diagonal": np.diagonal(K).copy(),
        "ridge": rng.uniform(0.1, 1, n) if ridge else None,
        "lo": lo,
        "hi": hi,
        "epsilon": epsilon,
        "groups": np.linspace(0, n, groups + 1).astype(np.int64),
        "b": np.zeros(n),
        "v": rng.normal(size=n),
    }


def value(p, z, b):
    ridge = 0.0 if p["ridge"] is None else 0.5 * p["ridge"] @ (b * b)
    return 0.5 * b @ p["K"] @ b + ridge - z @ b + p["epsilon"] * np.abs(b).sum()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_smo_reaches_a_point_that_no_pair_improves(dtype):
    for seed, n in enumerate((1, 2, 5, 8, 9, 16, 37)):
        for groups, epsilon, ridge in ((1, 0.0, False), (1, 0.3, False), (2, 0.0, True)):
            p = problem(n, seed, groups=min(groups, n), epsilon=epsilon, ridge=ridge)
            p["K"] = p["K"].astype(dtype)
            p["diagonal"] = np.diagonal(p["K"]).astype(np.float64) + (0 if p["ridge"] is None else p["ridge"])
            z = p["v"].copy()
            steps, violation, curvature = _native.svm.smo(**p, tolerance=1e-9, limit=100_000)
            b, K = p["b"], p["K"].astype(np.float64)
            assert violation <= 1e-9
            assert curvature >= -1e-6
            assert steps < 100_000
            assert np.all((b >= p["lo"]) & (b <= p["hi"]))
            assert_allclose(p["v"], z - K @ b - (0 if p["ridge"] is None else p["ridge"] * b), atol=1e-6)
            best, p["K"] = value(p | {"K": K}, z, b), K
            for g in range(len(p["groups"]) - 1):
                members = np.arange(*p["groups"][g : g + 2])
                assert b[members].sum() == pytest.approx(0.0, abs=1e-12)
                for i in members:
                    for j in members:
                        t = 1e-4
                        if i != j and b[i] + t <= p["hi"][i] and b[j] - t >= p["lo"][j]:
                            moved = b.copy()
                            moved[i] += t
                            moved[j] -= t
                            assert value(p, z, moved) >= best - 1e-10


def test_sweeps_reach_a_point_that_no_variable_improves():
    p = problem(30, 3, epsilon=0.2)
    del p["groups"]
    z = p["v"].copy()
    _native.svm.coordinate_sweeps(**p, tolerance=1e-10, sweeps=10_000)
    b = p["b"]
    v = z - p["K"] @ b
    grows = v - np.where(b >= 0, 0.2, -0.2)
    shrinks = v - np.where(b > 0, 0.2, -0.2)
    assert grows[b < p["hi"]].max() <= 1e-8
    assert shrinks[b > p["lo"]].min() >= -1e-8


def test_limits_are_kept():
    p = problem(40, 0)
    assert _native.svm.smo(**p, tolerance=1e-12, limit=7)[0] == 7
    p = problem(5, 0)
    p["hi"][:] = p["lo"][:] = 0.0
    assert _native.svm.smo(**p, tolerance=1e-12, limit=7)[0] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_added(dtype):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(9, 5001)).astype(dtype)
    for m in (0, 1, 4, 7):
        rows, c, out = rng.integers(0, 9, m), rng.normal(size=m), rng.normal(size=5001)
        expected = out + np.where((np.arange(5001) >= 3) & (np.arange(5001) < 4999), c @ K[rows].astype(float), 0.0)
        _native.svm.add_rows(K, rows, c, 3, 4999, out)
        assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_gaussian_in_single_precision():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.3, 3.0, 100.0):
        A, B = (scale * rng.normal(size=(n, 6)).astype(np.float32) for n in (7, 33))
        A[0] = B[0]
        squares = [np.square(M.astype(float)).sum(axis=1).astype(np.float32) for M in (A, B)]
        G = A @ B.T
        _native.svm.gaussian_single(G, *squares, A, B)
        D = np.square(A[:, None].astype(float) - B[None]).sum(axis=2)
        assert_allclose(G, np.exp(-0.5 * D), rtol=3e-5, atol=1e-9)
        assert G[0, 0] == pytest.approx(1.0, abs=1e-6)


def test_bad_calls():
    p = problem(6, 0)
    for change in (
        {"K": np.ones((5, 6))},
        {"lo": np.zeros(5)},
        {"epsilon": -1.0},
        {"groups": np.array([0, 5])},
        {"groups": np.array([0])},
        {"groups": np.array([0, 7, 6])},
        {"ridge": np.ones(3)},
        {"v": np.zeros(7)},
    ):
        with pytest.raises(ValueError, match="smo: expected"):
            _native.svm.smo(**p | change, tolerance=1e-3, limit=10)
    with pytest.raises(ValueError, match="add_rows: expected"):
        _native.svm.add_rows(np.ones((2, 3)), np.array([2]), np.ones(1), 0, 3, np.zeros(3))
    with pytest.raises(ValueError, match="add_rows: expected"):
        _native.svm.add_rows(np.ones((2, 3)), np.array([0]), np.ones(1), 0, 4, np.zeros(3))
    with pytest.raises(ValueError, match="gaussian_single: expected"):
        _native.svm.gaussian_single(
            np.ones((2, 3), np.float32),
            np.ones(2, np.float32),
            np.ones(2, np.float32),
            np.ones((2, 4), np.float32),
            np.ones((3, 4), np.float32),
        )
    with pytest.raises(TypeError):
        _native.svm.smo(**p | {"b": np.zeros(6, np.float32)}, tolerance=1e-3, limit=10)
