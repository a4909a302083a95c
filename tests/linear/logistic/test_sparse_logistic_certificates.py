"""L1 logistic regression on random and awkward problems: a certificate that holds is true, and nothing crashes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sparse_logistic_reference import lower, objective

import epicycle as ep
from epicycle import LogisticRegression
from epicycle.linear.logistic._duality import stationary

FORMS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}
EPS = float(np.finfo(float).eps)


@settings(max_examples=150)
@given(
    n=st.integers(4, 40),
    p=st.integers(1, 60),
    n_classes=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from([*FORMS, "float32", "float32 csc"]),
    l1_ratio=st.sampled_from([0.1, 0.9, 1.0, 1.0]),
    C=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]),
    weighted=st.booleans(),
    intercept=st.booleans(),
    defect=st.sampled_from(["none", "none", "constant", "twin", "zero rows", "wild", "far", "separable", "rare class"]),
)
def test_a_certificate_that_holds_is_true(n, p, n_classes, seed, form, l1_ratio, C, weighted, intercept, defect):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < (0.4 if "cs" in form else 1.0))
    y = (X[:, :1] @ rng.normal(size=(1, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    weight = rng.uniform(0.01, 3, size=n)
    if defect == "constant":
        X[:, 0] = 7.0
    elif defect == "twin":
        X[:, -1] = -2 * X[:, 0]
    elif defect == "zero rows":
        weight[: n // 2] = 0.0
    elif defect == "wild":
        X *= 10.0 ** rng.integers(-6, 7, p)
    elif defect == "far" and "cs" not in form:
        X += 1e4
    elif defect == "separable":
        y = (X[:, 0] > 0.1).astype(int)
    elif defect == "rare class":
        y = np.where(np.arange(n) == n - 1, 1, 0)
    weight = weight if weighted or defect == "zero rows" else np.ones(n)
    X = X.astype(np.float32) if "float32" in form else X
    X = sp.csc_array(X) if form == "float32 csc" else FORMS.get(form, np.asarray)(X)
    classes = np.unique(y[weight > 0])
    if len(classes) < 2:
        return
    model = LogisticRegression(C=C, l1_ratio=l1_ratio, fit_intercept=intercept, tol=1e-7, max_iter=300)
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X, y, weight if weighted or defect == "zero rows" else None)
    assert np.isfinite(model.coef_).all()
    assert model.converged_ == model.certificate_.holds
    if defect not in ("wild", "far"):
        assert model.certificate_.holds
    if not model.certificate_.holds:
        return
    used = weight > 0
    X64 = (X.toarray() if sp.issparse(X) else X).astype(float)[used]
    codes = np.searchsorted(classes, y[used])
    arguments = X64, codes, weight[used], l1_ratio / C, (1 - l1_ratio) / C
    value = objective(*arguments, model.coef_, model.intercept_)
    least = lower(*arguments, model.coef_, model.intercept_, intercept, steps=200)
    eps = EPS if model.coef_.dtype == np.float64 else float(np.finfo(np.float32).eps)
    moved = 8 * eps * (np.abs(X64) @ np.abs(model.coef_).T.astype(float) + np.abs(model.intercept_)).max(axis=1)
    rounding = 1e-13 * value + float(weight[used] @ np.minimum(moved, 1.0)) * 2
    assert value - least <= model.certificate_.value * value + rounding


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_stationary_distribution(n_classes):
    """a'M = 0 to full relative precision, also where classes hardly meet."""
    rng = np.random.default_rng(n_classes)
    Q = rng.uniform(size=(n_classes, n_classes)) * 10.0 ** rng.integers(-12, 1, size=(n_classes, n_classes))
    M = -Q
    np.fill_diagonal(M, 0.0)
    M -= np.diag(M.sum(axis=1))
    a = stationary(M)
    assert a is not None
    assert a.max() == 1
    balance = a @ M
    assert (np.abs(balance) <= 1e-14 * (a[:, None] * np.abs(M)).sum(axis=0)).all()
    assert stationary(np.zeros((n_classes, n_classes))) is None


def test_the_gap_is_no_idle_number():
    """Halfway, the gap is larger than what is missing, and it falls with every round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 400))
    y = (X[:, :5].sum(axis=1) + rng.logistic(size=200) > 0).astype(int)
    full = LogisticRegression(C=0.1, l1_ratio=1.0, tol=1e-12).fit(X, y)
    best = full.history_.objective[-1]
    missing, gap = full.history_.objective - best, full.history_.gap
    assert (missing[:-2] <= gap[:-2] * (1 + 1e-9)).all()
    assert (np.diff(gap) < 0).all()
    cut = LogisticRegression(C=0.1, l1_ratio=1.0, max_iter=1)
    with pytest.warns(ep.exceptions.ConvergenceWarning, match="did not converge"):
        cut.fit(X, y)
    assert not cut.certificate_.holds
    assert cut.certificate_.value * cut.history_.objective[-1] >= cut.history_.objective[-1] - best
