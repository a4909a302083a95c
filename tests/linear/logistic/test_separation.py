"""Separation of unpenalised fits: complete and quasi-complete, two classes and more, with the columns named."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import epicycle as ep
from epicycle import LogisticRegression
from epicycle.exceptions import ConvergenceWarning, SeparationError, SeparationWarning


def table(n=200, seed=0):
    """Overlapping classes, and two rare treatments after which only one outcome is seen."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(50, 10, n), "dose": rng.normal(size=n), "noise": rng.normal(size=n)})
    X["rare"] = (np.arange(n) % 13 == 0).astype(float)
    X["other"] = (np.arange(n) % 17 == 5).astype(float)
    return X, rng.normal(size=n), rng


def two_classes(columns):
    X, noise, _ = table()
    y = (X.dose + 2 * noise > 0).astype(int)
    if "rare" in columns:
        y[X.rare == 1] = 1
    if "other" in columns:
        y[(X.other == 1) & (X.rare == 0)] = 0
        X.loc[X.rare == 1, "other"] = 0.0
    return X, y


def three_classes(columns):
    X, _, rng = table()
    y = rng.integers(0, 3, len(X))
    y[X.rare == 1] = 2
    return X.drop(columns="other"), y


def say(model, X, y, **given):
    with pytest.warns(SeparationWarning) as caught:
        model.fit(X, y, **given)
    assert len(caught) == 1
    assert issubclass(caught[0].category, ConvergenceWarning)
    assert caught[0].filename == __file__
    return str(caught[0].message)


@pytest.mark.parametrize("columns", [["rare"], ["rare", "other"]])
@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs"])
def test_quasi_complete_separation_of_two_classes(columns, solver):
    X, y = two_classes(columns)
    if "other" not in columns:
        X = X.drop(columns="other")
    model = LogisticRegression(C=np.inf, solver=solver)
    words = say(model, X, y)
    assert "quasi-complete separation" in words
    assert f"grow for {', '.join(columns)}." in words or f"grow for {', '.join(columns[::-1])}." in words
    assert not model.certificate_.holds
    assert model.certificate_.kind == "separation"
    assert "rare" in model.certificate_.meaning
    assert not model.converged_
    assert "no standard errors" in str(model.summary())
    assert "std err" not in model.summary().columns
    assert model.predict(X).shape == y.shape
    with ep.config(on_nonconvergence="raise"), pytest.raises(SeparationError, match="quasi-complete"):
        LogisticRegression(C=np.inf, solver=solver).fit(X, y)
    with ep.config(on_nonconvergence="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not LogisticRegression(C=np.inf, solver=solver).fit(X, y).certificate_.holds
    assert LogisticRegression(C=1.0).fit(X, y).certificate_.holds


def test_the_finite_part_is_that_of_the_rows_on_the_boundary():
    """Coefficients that are not named tend to those of the fit to the rows that are not told apart."""
    X, y = two_classes(["rare"])
    X = X.drop(columns="other")
    model = LogisticRegression(C=np.inf)
    say(model, X, y)
    rest = X.rare == 0
    limit = LogisticRegression(C=np.inf).fit(X[rest].drop(columns="rare"), y[rest])
    np.testing.assert_allclose(model.coef_[0, :3], limit.coef_[0], rtol=1e-4)
    assert model.coef_[0, 3] > 10


def test_quasi_complete_separation_of_several_classes():
    X, y = three_classes(["rare"])
    model = LogisticRegression(C=np.inf)
    words = say(model, X, y)
    assert "quasi-complete separation by rare:" in words
    assert "16 of 200 rows" in words


def test_other_forms_of_the_data(tmp_path):
    X, y = two_classes(["rare"])
    X = X.drop(columns="other")
    assert "by x3:" in say(LogisticRegression(C=np.inf), sp.csr_array(X.to_numpy()), y)
    assert "by rare:" in say(LogisticRegression(C=np.inf), X.astype(np.float32), y)
    assert "by rare:" in say(LogisticRegression(C=np.inf), X, y, sample_weight=np.full(len(y), 0.3))
    X.assign(y=y).to_parquet(tmp_path / "t.parquet")
    assert "by rare:" in say(LogisticRegression(C=np.inf), ep.scan(tmp_path / "t.parquet", target="y"), None)
    chunks = da.from_array(X.to_numpy(), chunks=(60, 4))
    assert "by x3:" in say(LogisticRegression(C=np.inf), chunks, da.from_array(y, chunks=60))
    assert "by rare:" in say(LogisticRegression(C=np.inf, fit_intercept=False), X - [50, 0, 0, 0], y)


def test_rows_without_weight_do_not_count():
    X, y = two_classes(["rare"])
    y = y.copy()
    y[0] = 0  # the only treated row with the other outcome
    X = X.drop(columns="other")
    assert LogisticRegression(C=np.inf).fit(X, y).certificate_.holds
    weight = np.ones(len(y))
    weight[0] = 0
    assert "by rare:" in say(LogisticRegression(C=np.inf), X, y, sample_weight=weight)


def test_many_rows_enter_as_cutting_planes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30_000, 5))
    X[:, 3] = 0
    X[7000:7020, 3] = 1
    y = (X[:, 0] + 2 * rng.logistic(size=len(X)) > 0).astype(int)
    y[7000:7020] = 0
    words = say(LogisticRegression(C=np.inf), X, y)
    assert "by x3: 20 of 30000 rows" in words


def test_complete_separation_names_what_it_takes():
    """Two columns that separate only together."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
    gap = X.a - X.c
    X, y = X[np.abs(gap) > 0.2], (gap[np.abs(gap) > 0.2] > 0).to_numpy()
    with pytest.warns(SeparationWarning, match=r"grow for (a, c|c, a)\. Use a finite C"):
        LogisticRegression(C=np.inf).fit(X, y)


def separable(X, y):
    """Albert and Anderson's condition by one linear program: the classes' convex hulls meet, or they do not."""
    A = (2 * y - 1)[:, None] * np.column_stack([X, np.ones(len(X))])
    found = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1, 1), method="highs")
    return -found.fun > 1e-7


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(8, 60), p=st.integers(1, 4))
def test_separation_is_said_exactly_where_there_is_one(seed, n, p):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, p)).astype(float)
    y = (X[:, 0] + rng.normal(size=n) * rng.choice([0.1, 1.0, 3.0]) > 0).astype(int)
    if len(np.unique(y)) < 2:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LogisticRegression(C=np.inf).fit(X, y)
    said = any(w.category is SeparationWarning for w in caught)
    assert model.certificate_.holds == (not said)
    assert said == separable(X, y)
