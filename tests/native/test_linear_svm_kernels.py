"""The kernels of the linear support vector machines, against NumPy, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from epicycle import _native


def loss_of(form, epsilon=0.0, width=1.0):
    return _native.svm.MarginLoss(regression=form[0], squared=form[1], epsilon=epsilon, width=width)


def with_indices(S, index):
    S = S.copy()
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    return S


def smoothed(v, c, squared, width):
    """Loss, smooth loss, slack, slope and curvature of rows with violations v."""
    v = np.maximum(v, 0)
    if squared:
        return c * v**2, 0 * v, 0 * v, 2 * c * v, 2 * c * (v > 0)
    share = np.minimum(v / width, 1)
    inside = (v > 0) & (v < width)
    rounded = np.where(v < width, c * v**2 / (2 * width), c * (v - width / 2))
    return c * v, rounded, c * v * (1 - share), c * share, c * inside / width


@pytest.mark.parametrize("form", [(False, False), (False, True), (True, False), (True, True)])
def test_margin_sums(form):
    regression, squared = form
    rng = np.random.default_rng(0)
    X, c, w, b = rng.normal(size=(700, 5)), rng.uniform(0, 2, size=700), rng.normal(size=5), 0.3
    c[:40] = 0
    y = rng.normal(size=700) if regression else np.sign(rng.normal(size=700))
    S, loss = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0)), loss_of(form, 0.1, 0.4)
    for A, weight, got in [
        (X, c, _native.svm.margin_sums(X, y, c, w, b, loss)),
        (X, None, _native.svm.margin_sums(np.asfortranarray(X), y, None, w, b, loss)),
        (X.astype(np.float32), c, _native.svm.margin_sums(X.astype(np.float32), y, c, w, b, loss)),
        (X[::-2], c[::-2], _native.svm.margin_sums(X[::-2], y[::-2].copy(), c[::-2].copy(), w, b, loss)),
        *(
            (S.toarray(), c, _native.svm.margin_sums(with_indices(S, index), y, c, w, b, loss))
            for index in (np.int32, np.int64)
        ),
    ]:
        A1 = np.column_stack([A, np.ones(len(A))]).astype(float)
        t = y[::-2] if len(A) < len(y) else y
        cc = np.ones(len(A)) if weight is None else weight
        z = A1 @ np.append(w, b)
        v = np.abs(z - t) - 0.1 if regression else 1 - t * z
        sign = np.where(z < t, -1, 1) if regression else -t
        plain, smooth, slack, slope, curvature = smoothed(v, cc, squared, 0.4)
        assert_allclose(got[:3], [plain.sum(), smooth.sum(), slack.sum()], rtol=1e-10)
        assert got[3:5] == (((v > 0) & (cc > 0)).sum(), (curvature > 0).sum())
        assert_allclose(got[5], [A1.T @ (slope * sign), A1.T @ (slope * sign * (curvature > 0))], atol=1e-9)
        assert_allclose(got[6], (A1 * curvature[:, None]).T @ A1, atol=1e-9)


def descent(n=60, p=4, *, regression=False, squared=False, sparse=False, seed=0):
    """Arguments of dual_passes."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, p)) < 0.6, rng.normal(size=(n, p)), 0)
    table = np.zeros((n, 4))
    table[:, 0] = rng.normal(size=n) if regression else np.sign(rng.normal(size=n))
    table[:, 1] = rng.uniform(0.2, 2, n)
    table[:, 2] = (X**2).sum(axis=1) + 0.25 + (0.5 / table[:, 1] if squared else 0)
    state = [table, np.zeros(p + 1), np.arange(n), np.array([n, np.inf, 0.0])]
    epsilon = 0.1 if regression else 0.0
    settings = (loss_of((regression, squared), epsilon), 0.5)
    return X, sp.csr_array(X) if sparse else X, settings, state


@pytest.mark.parametrize("form", [(False, False), (False, True), (True, False), (True, True)])
def test_dual_passes_rise_and_keep_their_books(form):
    regression, squared = form
    ends = []
    for sparse in (False, True):
        X, rows, settings, state = descent(regression=regression, squared=squared, sparse=sparse)
        table, w, order, number = state
        values = []
        for k in range(30):
            report = np.zeros((1, 4))
            assert _native.svm.dual_passes(rows, *settings, *state, _native.svm.Passes(7, k, 0.0, report)) == 1
            values.append(report[0, 1])
        y, c, _, beta = table.T
        A = np.column_stack([X, np.full(len(X), 0.5)])
        assert_allclose(w, A.T @ beta, atol=1e-12)
        d, epsilon = 0.5 / c if squared else 0, 0.1 if regression else 0.0
        dual = y @ beta - epsilon * np.abs(beta).sum() - (d * beta**2).sum() / 2 - w @ w / 2
        assert_allclose([number[2], values[-1]], dual, rtol=1e-12)
        assert np.all(np.diff(values) >= -1e-12)
        assert np.all(np.abs(beta) <= (np.inf if squared else c))
        assert regression or np.all(beta * y >= 0)
        assert np.array_equal(np.sort(order), np.arange(len(X)))
        z = A @ w
        v = np.maximum(np.abs(z - y) - epsilon if regression else 1 - y * z, 0)
        gap = w @ w / 2 + (c * (v**2 if squared else v)).sum() - dual
        assert -1e-10 <= gap <= 0.02 * dual
        ends.append(w.copy())
    assert_allclose(*ends, atol=1e-9)
    assert_allclose(_native.svm.dual_weights(rows_of(X), table, 0.5), w, atol=1e-12)


def rows_of(X):
    return np.asfortranarray(X)


def test_passes_do_not_depend_on_how_they_are_called():
    _, rows, settings, state = descent()
    *_, other = descent()
    whole = np.zeros((6, 4))
    assert _native.svm.dual_passes(rows, *settings, *state, _native.svm.Passes(3, 0, 0.0, whole)) == 6
    for k in range(6):
        report = np.zeros((1, 4))
        _native.svm.dual_passes(rows, *settings, *other, _native.svm.Passes(3, k, 0.0, report))
        assert np.array_equal(report[0], whole[k])
    assert all(np.array_equal(a, b) for a, b in zip(state, other, strict=True))
    early = np.zeros((50, 4))
    assert (
        _native.svm.dual_passes(rows, *settings, *state, _native.svm.Passes(3, 6, 0.5, early)) == 1
    )  # the gap is small enough already


def test_what_they_refuse():
    X, rows, settings, (table, w, order, number) = descent()
    report, plain = np.zeros((1, 4)), loss_of((False, False))
    bad_order, bad_table = order.copy(), table.copy()
    bad_order[3] = len(X)
    bad_table[5, 1] = 0.0
    for arguments in (
        (table[:-1].copy(), w, order, number),
        (table, w[:-1].copy(), order, number),
        (table, w, bad_order, number),
        (bad_table, w, order, number),
        (table, w, order, np.array([len(X) + 1.0, np.inf, 0.0])),
        (table, w, order, number[:2].copy()),
    ):
        with pytest.raises(ValueError, match="dual_passes: expected"):
            _native.svm.dual_passes(rows, *settings, *arguments, _native.svm.Passes(0, 0, 0.0, report))
    with pytest.raises(ValueError, match="margin_sums: expected"):
        _native.svm.margin_sums(X, table[:-1, 0].copy(), None, w[:-1], 0.0, plain)
    with pytest.raises(ValueError, match="width > 0"):
        _native.svm.margin_sums(X, table[:, 0].copy(), None, w[:-1], 0.0, loss_of((False, False), width=0.0))
    with pytest.raises(ValueError, match="dual_weights"):
        _native.svm.dual_weights(X, table[:-1].copy(), 1.0)
    S = sp.csr_array(X)
    S.indices[2] = 99
    for function, rest in (
        (_native.svm.dual_passes, (*settings, table, w, order, number, _native.svm.Passes(0, 0, 0.0, report))),
        (_native.svm.dual_weights, (table, 1.0)),
        (_native.svm.margin_sums, (table[:, 0].copy(), None, w[:-1], 0.0, plain)),
    ):
        with pytest.raises(ValueError, match="CSR"):
            function(S, *rest)
