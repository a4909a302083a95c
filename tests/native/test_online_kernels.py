"""The kernels of learning row by row against plain NumPy, over memory layouts, types and bad calls."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from epicycle import _native


def table(seed, n=17, p=9, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, p)) < 0.5, 0.0, rng.normal(size=(n, p))).astype(dtype)


def layouts(X):
    """Dense in every layout, and sparse with both types of index."""
    wide = np.empty((X.shape[0] * 2, X.shape[1] * 3), X.dtype)
    wide[::2, ::3] = X
    short, long = sp.csr_array(X), sp.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    dense = {"C": X, "F": np.asfortranarray(X), "strided": wide[::2, ::3], "reversed": X[::-1, ::-1].copy()[::-1, ::-1]}
    return {**dense, "csr32": short, "csr64": long}


def state(p, K, extra):
    arrays = {"v": np.zeros((p, K)), "b": np.zeros(K), "number": np.zeros(8)}
    arrays["number"][:2] = 1.0
    names = {"a": (p, K), "base": (p, K), "b_sum": (K,), "q": (p, K)}
    return arrays | {name: np.zeros(shape) if extra else None for name, shape in names.items()}


def learn(X, y, K, *, loss=7, extra=False, order=None, fraction=None, positive=True, one=False):
    arrays = state(X.shape[1], K, extra)
    rule = _native.online.Rule(
        loss=loss,
        epsilon=0.1,
        schedule=1,
        eta0=0.05,
        exponent=0.5,
        offset=1.0,
        alpha=0.01,
        l2=0.01,
        l1=0.003 if extra else 0.0,
        intercept=1.0,
        average_from=1.0 if extra else 0.0,
        pull=0.0,
    )
    learner = _native.online.State(**arrays)
    mistakes, m = np.zeros(K), len(y) if order is None else len(order)
    dual, scores = np.zeros((len(y), K)), np.zeros((m, K))
    signs = np.arange(K, dtype=float) if positive else None
    losses = _native.online.learn(X, rule, learner, y, signs, order, fraction, dual, scores, mistakes, one)
    return losses, arrays, dual, scores, mistakes


def settled(arrays):
    """v when every penalty is paid: sparse rows let columns that they do not show owe it."""
    v, owed, paid = arrays["v"], arrays["number"][2], arrays["q"]
    if paid is None:
        return v
    return np.where(v > 0, np.maximum(v - (owed + paid), 0), np.minimum(v + (owed - paid), 0))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 99), K=st.integers(1, 3), extra=st.booleans(), dtype=st.sampled_from([np.float32, np.float64])
)
def test_every_layout_gives_the_same_model(seed, K, extra, dtype):
    X = table(seed, dtype=dtype)
    rng = np.random.default_rng(seed)
    y = rng.integers(K + 1, size=len(X)).astype(float)
    order, fraction = rng.integers(len(X), size=40), rng.uniform(0.1, 2, size=40)
    results = {
        name: learn(rows, y, K, extra=extra, order=order, fraction=fraction) for name, rows in layouts(X).items()
    }
    first = results["C"]
    for name, other in results.items():
        np.testing.assert_allclose(other[0], first[0], rtol=1e-10, err_msg=name)
        np.testing.assert_allclose(settled(other[1]), settled(first[1]), atol=1e-11, err_msg=name)
        np.testing.assert_allclose(other[2], first[2], atol=1e-11, err_msg=name)
    z = first[3][:, 0]
    assert z[0] == 0.0
    assert first[4][0] >= 1 * fraction[0]


def test_one_model_and_several_agree():
    X, y = table(1, n=200), np.random.default_rng(1).integers(2, size=200).astype(float)
    for rows in layouts(X).values():
        alone, general = (learn(rows, y, 1, one=one) for one in (True, False))
        np.testing.assert_allclose(alone[1]["v"], general[1]["v"], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hashes_squares_and_margin_passes(dtype):
    X = table(2, dtype=dtype)
    X[5] = X[3]
    hashes = {}
    for name, rows in layouts(X).items():
        hashes[name] = np.empty(len(X), np.uint64)
        _native.core.row_hashes(rows, hashes[name])
        np.testing.assert_allclose(_native.core.row_squares(rows), (X.astype(float) ** 2).sum(axis=1))
        assert np.array_equal(hashes[name], hashes["C"])
        sign, a, w = np.where(np.arange(len(X)) % 2, 1.0, -1.0), np.zeros(len(X)), np.zeros(X.shape[1] + 1)
        sign[5] = 0.0
        square = (X.astype(float) ** 2).sum(axis=1) + 1
        for _ in range(3):
            _native.online.margin_pass(rows, sign, square, True, a, w)
        np.testing.assert_allclose(np.column_stack([X, np.ones(len(X))]).T @ (a * sign), w, atol=1e-6)
        assert a.min() >= 0
        assert a[5] == 0
    assert hashes["C"][5] == hashes["C"][3]
    assert len(np.unique(hashes["C"])) == len(X) - 1


def test_unsound_sparse_rows_are_refused():
    X = sp.csr_array(table(3))
    y = np.zeros(17)

    def arrays(**change):
        bad = sp.csr_array(X.shape)
        for k in ("data", "indices", "indptr"):
            setattr(bad, k, change.get(k, getattr(X, k)))
        return bad

    low, nan, infinite = X.indices.copy(), X.data.copy(), X.data.astype(np.float32)
    low[4], nan[7], infinite[9] = -1, np.nan, np.inf
    backwards, beyond = X.indptr[::-1].copy(), X.indptr + np.int32(1)
    cases = [
        arrays(indices=low),
        arrays(data=nan),
        arrays(data=infinite),
        arrays(indptr=backwards),
        arrays(indptr=beyond),
    ]
    for bad in [*cases, arrays(indices=X.indices + np.int32(6))]:
        for order in (None, np.arange(17)[::-1].copy()):
            with pytest.raises(ValueError, match="well-formed"):
                learn(bad, y, 1, order=order)
            with pytest.raises(ValueError, match="well-formed"):
                learn(bad, y, 2, order=order)


def test_bad_calls_are_refused():
    X, y = table(0), np.zeros(17)
    with pytest.raises(ValueError, match=r"online\.learn"):
        learn(X, y[:3], 1)
    with pytest.raises(ValueError, match=r"online\.learn"):
        learn(X, y, 1, order=np.array([0, 17]))
    with pytest.raises(ValueError, match=r"online\.learn"):
        learn(X, y, 1, order=np.array([0, -1]))
    with pytest.raises(ValueError, match=r"online\.learn"):
        learn(X, y, 2, one=True)
    with pytest.raises(ValueError, match=r"online\.Rule"):
        learn(X, y, 1, loss=9)
    csr, narrow = sp.csr_array(X), sp.csr_array((17, 4))
    narrow.data, narrow.indices, narrow.indptr = csr.data, csr.indices, csr.indptr
    with pytest.raises(ValueError, match="well-formed"):
        learn(narrow, y, 1)
    with pytest.raises(TypeError):
        learn("", (X.astype(int),), y, 1)
