"""Five hundred random problems: what a certificate of the lasso or elastic net says is true in extended precision."""

import warnings

import numpy as np
import scipy.sparse as sp
from extended_precision import LD, solve
from hypothesis import given, settings, strategies as st
from lasso_reference import proximal_gradient

from epicycle import ElasticNet
from epicycle.exceptions import ConvergenceWarning


def exact_rows(X, y, weight, intercept):
    """Rows times square roots of weights that sum to one, about the weighted means, in extended precision."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, LD)
    y, v = np.asarray(y, LD), np.ones(len(y), LD) if weight is None else np.asarray(weight, LD)
    v = v / v.sum()
    x_mean, y_mean = (v @ X, v @ y) if intercept else (np.zeros(X.shape[1], LD), LD(0))
    return np.sqrt(v)[:, None] * (X - x_mean), np.sqrt(v) * (y - y_mean)


def objective(A, b, w, l1, l2):
    r = b - A @ w
    return r @ r / 2 + l1 @ np.abs(w) + l2 @ w**2 / 2


def refined(A, b, l1, l2, positive, w):
    """Coordinate descent and Newton's method on the support, in extended precision, from a point nearby."""
    square = (A**2).sum(axis=0)
    w = np.asarray(w, LD)
    best, r = w.copy(), b - A @ w
    for sweep in range(12):
        for j in np.flatnonzero(square + l2 > 0):
            g = A[:, j] @ r + square[j] * w[j]
            size = max(g if positive else abs(g), LD(0)) - l1[j]
            fresh = np.sign(g) * max(size, LD(0)) / (square[j] + l2[j])
            if fresh != w[j]:
                r -= (fresh - w[j]) * A[:, j]
                w[j] = fresh
        S = np.flatnonzero(w)
        if sweep % 4 == 3 and 0 < len(S) <= len(b):
            B = A[:, S]
            with np.errstate(all="ignore"):
                x = solve(B.T @ B + np.diag(l2[S]), B.T @ b - l1[S] * np.sign(w[S]))
            if np.isfinite(x).all():
                trial = np.zeros_like(w)
                trial[S] = np.where(x * np.sign(w[S]) > 0, x, 0)
                if objective(A, b, trial, l1, l2) < objective(A, b, w, l1, l2):
                    w, r = trial, b - A @ trial
        if objective(A, b, w, l1, l2) < objective(A, b, best, l1, l2):
            best = w.copy()
    return best


def build(n, p, seed, form, defect, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.2, 5.0, p) + 2.0 * rng.standard_normal(p)
    if form in ("csc", "csr"):
        X *= rng.random((n, p)) < 0.4
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.4)) + 2.0 + rng.standard_normal(n)
    weight = rng.integers(0, 4, n).astype(float) + (rng.integers(n) == np.arange(n))
    if "constant" in defect:
        X[:, rng.integers(p)] = 0.1
    if "twins" in defect:
        X[:, -1] = X[:, 0]
        X[:, p // 2] = -X[:, 0]
    if "sum" in defect and p > 2:
        X[:, 2] = X[:, 0] + X[:, 1] + 1e-9 * rng.standard_normal(n)
    if "wild" in defect:
        X *= 10.0 ** rng.integers(-6, 7, p)
    if "far" in defect and form not in ("csc", "csr"):
        X += 1e4
    y *= scale
    return X, y, weight


@settings(max_examples=500)
@given(
    n=st.integers(2, 24),
    p=st.integers(1, 30),
    seed=st.integers(0, 100_000),
    form=st.sampled_from(["F", "C", "csc", "csr", "float32"]),
    scale=st.sampled_from([1.0, 1e-7, 1e7]),
    defect=st.sets(st.sampled_from(["constant", "twins", "sum", "wild", "far"]), max_size=2),
    l1_ratio=st.sampled_from([1.0, 1.0, 0.6, 0.05]),
    share=st.sampled_from([1.2, 0.5, 0.1, 0.01, 1e-4]),
    positive=st.booleans(),
    weighted=st.booleans(),
    intercept=st.booleans(),
    factors=st.booleans(),
)
def test_five_hundred_problems(
    n, p, seed, form, scale, defect, l1_ratio, share, positive, weighted, intercept, factors
):
    """P(w) - min P <= value * |y|^2 / 2 wherever the certificate holds; nothing crashes, nothing hangs."""
    X, y, weight = build(n, p, seed, form, defect, scale)
    make = {"F": np.asfortranarray, "C": np.ascontiguousarray, "csc": sp.csc_array, "csr": sp.csr_array}
    X = X.astype(np.float32) if form == "float32" else make[form](X)
    weight = weight if weighted else None
    f = np.random.default_rng(seed).uniform(0.3, 3.0, p) if factors else np.ones(p)
    A, b = exact_rows(X, y, weight, intercept)
    alpha = share * float(np.abs(A.T @ b).max()) + 1e-12 * scale
    model = ElasticNet(
        alpha,
        l1_ratio=l1_ratio,
        positive=positive,
        fit_intercept=intercept,
        penalty_weights=f if factors else None,
        tol=1e-9,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, weight)
    assert model.certificate_.holds == (not any(w.category is ConvergenceWarning for w in caught))
    assert model.coef_.dtype == X.dtype
    total = b @ b / 2
    if not model.certificate_.holds or total == 0:
        return
    w = np.asarray(model.coef_, LD)
    assert np.isfinite(model.coef_).all()
    assert not positive or (w >= 0).all()
    l1, l2 = LD(alpha) * LD(l1_ratio) * f, LD(alpha) * (1 - LD(l1_ratio)) * f
    lengths = np.sqrt((A**2).sum(axis=0)).astype(np.float64)
    lengths[lengths == 0] = 1.0  # the reference works with columns of length one
    start = proximal_gradient(
        (A / lengths).astype(np.float64),
        b.astype(np.float64),
        (l1 / lengths).astype(np.float64),
        (l2 / lengths**2).astype(np.float64),
        positive,
        steps=200,
    )
    best = refined(A, b, l1, l2, positive, start / lengths)
    best = min(best, refined(A, b, l1, l2, positive, w), key=lambda v: objective(A, b, v, l1, l2))
    # Coefficients are rounded to the type of X, and data far from the origin about its mean.
    rounding = 1e-9 if form == "float32" else 1e-13 if "far" in defect else 1e-15
    excess = (objective(A, b, w, l1, l2) - objective(A, b, best, l1, l2)) / total
    assert excess <= model.certificate_.value * (1 + 1e-6) + rounding
