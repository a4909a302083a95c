"""The kernels of the lasso against plain NumPy: columns in every layout, descent, screening, bad calls."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import _native


def layouts(X):
    wide = np.zeros((X.shape[0] * 2, X.shape[1] * 3), X.dtype)
    wide[::2, ::3] = X
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": wide[::2, ::3],
        "reversed": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "padded": np.hstack([X, X])[:, : X.shape[1]],
    }


def columns_of(X, index=np.int32):
    X = sp.csc_array(X)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def statistics(X, v, u, centre, p, cut=None):
    mean, square, product = np.full((3, p), np.nan)
    cut = p // 2 if cut is None else cut
    for first, last in ((0, cut), (cut, p)):
        _native.linear.lasso_columns(X, v, u, centre, first, last, mean, square, product, threads=2)
    return mean, square, product


@settings(max_examples=60)
@given(
    n=st.integers(1, 300),
    p=st.integers(1, 70),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
    centre=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    index=st.sampled_from([np.int32, np.int64]),
    density=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_columns_of_any_shape(n, p, seed, weighted, centre, dtype, index, density):
    rng = np.random.default_rng(seed)
    X = ((rng.standard_normal((n, p)) + 2) * (rng.random((n, p)) < density)).astype(dtype)
    v = rng.random(n) + 0.1 if weighted else np.ones(n)
    v /= v.sum()
    weight = v if weighted else None
    u, D = rng.standard_normal(n), X.astype(np.float64)
    mean = v @ D if centre else np.zeros(p)
    expected = mean, v @ (D - mean) ** 2, (D - mean).T @ u
    chosen = np.sort(rng.permutation(p)[: (p + 1) // 2])
    coef = rng.standard_normal(len(chosen))
    left = u - (D - mean)[:, chosen] @ coef
    close = {"rtol": 1e-10, "atol": 1e-10}

    for form in (columns_of(X, index), *layouts(X).values()):
        measured = statistics(form, v=weight, u=u, centre=centre, p=p)
        for ours, theirs in zip(measured, expected, strict=True):
            assert_allclose(ours, theirs, **close)
        out = np.zeros(p)
        _native.linear.lasso_correlations(form, u, mean, None, 0, p, out, 2)
        assert_allclose(out, expected[2], **close)
        out[:] = 0
        _native.linear.lasso_correlations(form, u, mean, chosen, 0, len(chosen), out, 1)
        assert_allclose(out[chosen], expected[2][chosen], **close)
        assert not out[np.setdiff1d(np.arange(p), chosen)].any()
        several, apart = np.zeros((3, p)), np.zeros(p)
        U = np.stack([u, 2 * u - 1, -u * u])
        _native.linear.lasso_correlations(form, U, mean, chosen, 0, len(chosen), several, 1)
        for row, found in zip(U, several, strict=True):  # the same bits as one by one
            _native.linear.lasso_correlations(form, row, mean, chosen, 0, len(chosen), apart, 1)
            assert np.array_equal(found, apart)
        r = u.copy()
        _native.linear.lasso_residual(form, mean, chosen, coef, r)
        assert_allclose(r, left, **close)
    for layout in layouts(X).values():
        A = np.empty((n, len(chosen)), order="F")
        _native.linear.lasso_gather(layout, weight, mean, chosen, A)
        assert_allclose(A, np.sqrt(v)[:, None] * (D - mean)[:, chosen], **close)


def test_columns_do_not_depend_on_threads_or_pieces():
    rng = np.random.default_rng(0)
    X, u, v = rng.standard_normal((200, 3000)), rng.standard_normal(200), np.full(200, 1 / 200)
    for layout in (np.asfortranarray(X), X):
        results = []
        for threads in (1, 3):
            out = np.empty((3, 3000))
            _native.linear.lasso_columns(layout, v, u, True, 0, 3000, *out, threads=threads)
            results.append(out)
        assert_array_equal(*results)


def budget_of(rounds=1, target=0.0, work=1e9):
    return _native.linear.Budget(rounds=rounds, target=target, work=work)


def minimum(A, b, l1, l2, positive):
    """Cyclic coordinate descent in Python, until nothing moves."""
    w = np.zeros(A.shape[1])
    for _ in range(20_000):
        before = w.copy()
        for j in range(len(w)):
            g = A[:, j] @ (b - A @ w) + A[:, j] @ A[:, j] * w[j]
            size = max(g - l1[j], 0) if positive else np.sign(g) * max(abs(g) - l1[j], 0)
            w[j] = size / (A[:, j] @ A[:, j] + l2[j])
        if np.abs(w - before).max() <= 1e-15:
            break
    return w


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_descent_reaches_the_minimum(positive, ridge, weighted):
    rng = np.random.default_rng(5)
    n, p = 40, 8
    X = np.asfortranarray((rng.standard_normal((n, p)) + 1) * (rng.random((n, p)) < 0.7))
    v = rng.random(n) + 0.5 if weighted else np.ones(n)
    v /= v.sum()
    weight = v if weighted else None
    y = X[:, 0] - 2 * X[:, 1] + rng.standard_normal(n)
    mean = v @ X
    A, b = np.sqrt(v)[:, None] * (X - mean), np.sqrt(v) * (y - v @ y)
    l1, l2, square = np.full(p, 0.05), np.full(p, ridge), (A**2).sum(axis=0)
    expected = minimum(A, b, l1, l2, positive)
    columns = np.arange(p)
    penalty, budget = _native.linear.Penalty(l1, l2, positive), budget_of(rounds=10_000, target=1e-15)

    w, r = np.zeros(p), y - v @ y
    epochs, gap, _ = _native.linear.csc_lasso_descend(
        columns_of(X), weight, columns, mean, square, penalty, w, r, budget
    )
    assert_allclose(w, expected, rtol=0, atol=1e-7)
    assert gap <= 1e-15
    assert epochs < 1000

    w, u = np.zeros(p), v * (y - v @ y)
    _native.linear.lasso_descend(X, weight, columns, mean, square, penalty, w, u, budget)
    assert_allclose(w, expected, rtol=0, atol=1e-7)
    assert_allclose(u, np.sqrt(v) * (b - A @ w), atol=1e-12)  # the residual was kept

    w, q, G = np.zeros(p), A.T @ b, A.T @ A
    _native.linear.gram_lasso_descend(G, columns, square, A.T @ b, b @ b, penalty, w, q, budget, until_settled=False)
    assert_allclose(w, expected, rtol=0, atol=1e-7)
    assert_allclose(q, A.T @ (b - A @ w), atol=1e-12)

    start = q.copy()
    _native.linear.gram_lasso_move(G, columns[:2], np.array([0.5, -1.0]), q)
    assert_allclose(q, start - 0.5 * G[0] + G[1])


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_many_sparse_columns_in_use_end_with_newton_steps(positive, ridge):
    rng = np.random.default_rng(3)
    n, p = 1000, 900
    X = sp.random_array((n, p), density=0.02, rng=rng, format="csc", data_sampler=rng.standard_normal) * 1.0
    v = rng.random(n) + 0.5
    v /= v.sum()
    w_true = np.abs(rng.standard_normal(p)) if positive else rng.standard_normal(p)
    y = X @ w_true + 0.1 * rng.standard_normal(n)
    y -= v @ y
    mean = v @ X
    A, b = np.sqrt(v)[:, None] * (X.toarray() - mean), np.sqrt(v) * y
    l1, l2, square, w = np.full(p, 1e-4), np.full(p, ridge), (A**2).sum(axis=0), np.zeros(p)
    epochs, gap, _ = _native.linear.csc_lasso_descend(
        columns_of(X),
        v,
        np.arange(p),
        mean,
        square,
        _native.linear.Penalty(l1, l2, positive),
        w,
        y,
        budget_of(rounds=10_000, target=1e-14 * (b @ b)),
    )
    used, c = w != 0, A.T @ (b - A @ w)
    away = np.sqrt(2e-14 * (b @ b) * (square.max() + ridge))  # a violation by more would be worth more than the gap
    assert used.sum() > 500  # of fewer, coordinate descent is left to itself
    assert gap <= 1e-14 * (b @ b)
    assert_allclose(c[used], l1[used] * np.sign(w[used]) + l2[used] * w[used], rtol=0, atol=away)
    assert (c if positive else np.abs(c))[~used].max() <= l1[0] + away
    assert (w >= 0).all() or not positive
    assert epochs < 100


def test_work_and_epochs_are_bounded():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 1)) + 0.01 * rng.standard_normal((30, 50))
    b = rng.standard_normal(30)
    G, xy, tiny = A.T @ A, A.T @ b, np.full(50, 1e-9)
    penalty = _native.linear.Penalty(tiny, 0 * tiny)
    for budget in (budget_of(rounds=7, work=1e12), budget_of(rounds=10**6, work=50 * 50 * 7 - 1)):
        done, *_ = _native.linear.gram_lasso_descend(
            G, np.arange(50), np.diag(G).copy(), xy, b @ b, penalty, np.zeros(50), xy.copy(), budget, False
        )
        assert 1 <= done <= 7


@settings(max_examples=50)
@given(seed=st.integers(0, 999), positive=st.booleans(), ridge=st.sampled_from([0.0, 0.5]))
def test_the_dual_point_is_feasible_and_screening_is_safe(seed, positive, ridge):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((12, 9)), rng.standard_normal(12)
    l1 = np.full(9, 0.5 * np.abs(A.T @ b).max())
    l2 = np.full(9, ridge)
    best = minimum(A, b, l1, l2, positive)
    w = best + 0.02 * rng.standard_normal(9) * (best != 0)
    w = np.maximum(w, 0) if positive else w
    r = b - A @ w
    c, alive, norm = A.T @ r, np.ones(9, np.uint8), np.linalg.norm(A, axis=0)
    none, penalty = np.zeros(9), _native.linear.Penalty(l1, l2, positive)
    primal, dual, scale = _native.linear.lasso_dual_point(c, none, w, penalty, alive, r @ r)

    def value(x):
        return ((b - A @ x) ** 2).sum() / 2 + l1 @ np.abs(x) + l2 @ x**2 / 2

    assert_allclose(primal, value(w))
    assert dual <= value(best) + 1e-12  # weak duality
    assert 0 < scale <= 1
    score = np.empty(9)
    left = _native.linear.lasso_screen(c, none, w, norm, penalty, scale, np.sqrt(2 * (primal - dual)), alive, score)
    assert left == alive.sum()
    assert not best[alive == 0].any()
    assert np.isinf(score[alive == 0]).all()
    # slack can only make the bound weaker and the screening more careful
    looser = _native.linear.lasso_dual_point(c, np.full(9, 0.1), w, penalty, np.ones(9, np.uint8), r @ r)
    assert looser[1] <= dual + 1e-12


def broken(name, change, rows=4):
    full, X = columns_of(np.arange(12.0).reshape(4, 3) + 1), sp.csc_array((rows, 3))
    for k in ("data", "indices", "indptr"):
        setattr(X, k, change(getattr(full, k).copy()) if k == name else getattr(full, k))
    return X


def set_item(index, value):
    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    "X",
    [
        broken("indices", set_item(0, -1)),
        broken("indices", set_item(0, 4)),
        broken("indptr", set_item(-1, 10_000)),
        broken("indptr", set_item(0, -2)),
        broken("indptr", set_item(1, 11)),
        broken("indices", lambda a: a[:-1]),
        broken(None, None, rows=3),
    ],
)
def test_malformed_sparse_matrices_are_refused(X):
    n, p = X.shape
    three, rows = np.zeros(p), np.zeros(n)
    columns, penalty = np.arange(p), _native.linear.Penalty(three, three)
    calls = [
        lambda: _native.linear.lasso_columns(X, None, rows, True, 0, p, three, three.copy(), three.copy(), 1),
        lambda: _native.linear.lasso_correlations(X, rows, three, None, 0, p, three.copy(), 1),
        lambda: _native.linear.lasso_residual(X, three, columns, three, rows.copy()),
        lambda: _native.linear.csc_lasso_descend(
            X, None, columns, three, three, penalty, three.copy(), rows, budget_of()
        ),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="lasso"):
            call()


def test_wrong_shapes_and_indices_are_refused():
    X, three, four, columns = np.asfortranarray(np.ones((4, 3))), np.zeros(3), np.zeros(4), np.arange(3)
    penalty, budget = _native.linear.Penalty(three, three), budget_of()
    calls = [
        lambda: _native.linear.lasso_columns(X, None, three, True, 0, 3, three, three, three, threads=1),
        lambda: _native.linear.lasso_columns(X, None, four, True, 0, 4, three, three, three, threads=1),
        lambda: _native.linear.lasso_columns(X, three, four, True, 0, 3, three, three, three, threads=1),
        lambda: _native.linear.lasso_columns(X, None, four, True, 0, 3, three, three, four, threads=1),
        lambda: _native.linear.lasso_correlations(X, four, three, np.array([3]), 0, 1, three, 1),
        lambda: _native.linear.lasso_correlations(X, four, three, np.array([-1]), 0, 1, three, 1),
        lambda: _native.linear.lasso_correlations(X, four, three, None, 0, 4, three, 1),
        lambda: _native.linear.lasso_correlations(X, four, three, None, 0, 3, three, 0),
        lambda: _native.linear.lasso_correlations(X, np.zeros((2, 4)), three, None, 0, 3, three, 1),
        lambda: _native.linear.lasso_correlations(X, np.zeros((2, 4)), three, None, 0, 3, np.zeros((3, 3)), 1),
        lambda: _native.linear.lasso_residual(X, three, columns, four, four),
        lambda: _native.linear.lasso_gather(X, None, three, columns, np.empty((3, 3), order="F")),
        lambda: _native.linear.lasso_descend(
            np.ascontiguousarray(X), None, columns, three, three, penalty, three, four, budget
        ),
        lambda: _native.linear.lasso_descend(X, None, columns, three, three, penalty, four, four, budget),
        lambda: _native.linear.gram_lasso_descend(
            np.eye(3),
            np.array([3]),
            np.ones(1),
            three,
            1.0,
            _native.linear.Penalty(np.ones(1), np.ones(1)),
            np.ones(1),
            three,
            budget,
            True,
        ),
        lambda: _native.linear.gram_lasso_move(np.eye(3), columns, four, three),
        lambda: _native.linear.lasso_dual_point(three, three, four, penalty, np.ones(3, np.uint8), 1.0),
        lambda: _native.linear.lasso_screen(
            three, three, three, three, _native.linear.Penalty(three, four), 1.0, 1.0, np.ones(3, np.uint8), three
        ),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="lasso"):
            call()
    with pytest.raises(TypeError):
        _native.linear.lasso_columns(np.ones((4, 3), int), None, four, True, 0, 3, three, three, three, threads=1)
