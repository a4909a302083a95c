"""Dependent features: the solution of minimum norm, and which feature is made of which others, by name."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import LinearRegression, Ridge
from epicycle.exceptions import CollinearityWarning, NotFittedError
from epicycle.linalg._dependencies import dependencies_of

quiet = pytest.mark.filterwarnings("ignore::epicycle.exceptions.CollinearityWarning")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["age", "dose", "weight", "height"])
    return X.assign(double=2 * X["dose"], unit=3.0, sum=X["age"] - X["height"] + 10), rng.normal(size=60)


def test_they_are_named(frame):
    X, y = frame
    with pytest.warns(CollinearityWarning) as caught:
        model = LinearRegression().fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert "3 of 7 features" in message
    for equation in ("'double' = 2 dose", "'unit' is constant", "'sum' = age - height + 10"):
        assert equation in message
        assert equation in model.summary().note
        assert equation in str(model.summary()).replace("\n", " ")
    assert model.dependent_features_ == {
        "double": {"dose": pytest.approx(2)},
        "unit": {},
        "sum": {"age": pytest.approx(1), "height": pytest.approx(-1)},
    }
    assert model.rank_ == 4
    assert "R2" in model.summary().facts
    with pytest.raises(NotFittedError, match=r"covariance: the features have rank 4 of 7 \('double' = 2 dose"):
        model.covariance()


def test_nobody_is_named_without_need(frame):
    X, y = frame
    independent = LinearRegression().fit(X.iloc[:, :4], y)
    assert independent.dependent_features_ == {}
    few = LinearRegression().fit(X.iloc[:4], y[:4])  # too few rows are not the fault of a feature
    assert few.dependent_features_ == {}
    assert Ridge(1e-3).fit(X, y).dependent_features_ == {}
    with pytest.warns(CollinearityWarning, match="Ridge: 3 of 7"):
        Ridge(0.0).fit(X, y)
    with pytest.warns(CollinearityWarning, match="'double' = 2 dose"):
        Ridge(1.0, penalty_weights=[1, 0, 1, 1, 0, 1, 1]).fit(X, y)


@quiet
@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "newton"])
def test_every_solver_and_source_names_the_same(frame, solver, tmp_path):
    X, y = frame
    expected = {"double": ["dose"], "unit": [], "sum": ["age", "height"]}
    X.assign(y=y).to_parquet(tmp_path / "d.parquet")
    for source in ((X, y), (ep.scan(tmp_path / "d.parquet", target="y"),)):
        model = LinearRegression(solver=solver).fit(*source)
        assert {name: list(others) for name, others in model.dependent_features_.items()} == expected
    with ep.config(on_nonconvergence="ignore"):  # Cholesky alone cannot always certify that nothing is left to gain
        sparse = LinearRegression(solver=solver).fit(sp.csr_array(X.to_numpy()), y)
    assert list(sparse.dependent_features_) == ["x4", "x5", "x6"]
    with ep.config(on_nonconvergence="ignore"):
        origin = LinearRegression(solver=solver, fit_intercept=False).fit(X, y)
    assert list(origin.dependent_features_) == ["double", "sum"]  # of the constant and the others
    assert origin.dependent_features_["sum"].keys() == {"age", "height", "unit"}


@quiet
def test_what_can_be_said_is_said_and_nothing_else(frame):
    """Fitted values, leverages and intervals of rows that depend alike are those without the dependent features."""
    X, y = frame
    whole, part = LinearRegression().fit(X, y), LinearRegression().fit(X.iloc[:, :4], y)
    assert_allclose(whole.predict(X), part.predict(X.iloc[:, :4]), atol=1e-10)
    assert_allclose(whole.leverage(X), part.leverage(X.iloc[:, :4]), rtol=1e-8)
    assert_allclose(whole.influence(X, y).cooks_distance, part.influence(X.iloc[:, :4], y).cooks_distance, rtol=1e-6)
    for kind in ("confidence", "prediction"):
        ours, theirs = whole.predict_interval(X, kind=kind), part.predict_interval(X.iloc[:, :4], kind=kind)
        assert_allclose(ours.lower, theirs.lower, rtol=1e-7, atol=1e-9)
    other = X.copy()
    other.iloc[0, 4] += 1.0  # no longer twice the dose: no row says what the mean is there
    got = whole.predict_interval(other)
    assert got.upper[0] == np.inf
    assert got.lower[0] == -np.inf
    assert np.isfinite(got.upper[1:]).all()
    robust = LinearRegression(cov_type="HC3").fit(X, y).predict_interval(X, kind="confidence")
    alone = LinearRegression(cov_type="HC3").fit(X.iloc[:, :4], y).predict_interval(X.iloc[:, :4], kind="confidence")
    assert_allclose(robust.upper, alone.upper, rtol=1e-6, atol=1e-8)


def test_more_features_than_rows():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    model = LinearRegression().fit(X, y)
    A, b = X - X.mean(axis=0), y - y.mean()
    assert_allclose(model.coef_, np.linalg.pinv(A) @ b, atol=1e-10)
    assert_allclose(model.leverage(X), np.ones(20), rtol=1e-8)
    assert "0 degrees of freedom" in model.summary().note


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8), st.integers(1, 3), st.booleans())
def test_planted_dependencies_are_found(seed, p, extra, wild):
    """Features made of those before them, in wild units: as many are named as were planted, and they hold."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-8, 9, size=(40, p)).astype(float)
    for _ in range(extra):
        C = rng.integers(-2, 3, size=A.shape[1])
        C[rng.integers(A.shape[1])] = 1
        A = np.column_stack([A, A @ C + rng.integers(-5, 6)])
    units = 2.0 ** rng.integers(-30, 30, size=A.shape[1]) if wild else np.ones(A.shape[1])
    X, y = A * units, rng.normal(size=40)
    rank = np.linalg.matrix_rank(A - A.mean(axis=0))
    with ep.config(on_nonconvergence="ignore"), pytest.warns(CollinearityWarning):
        model = LinearRegression().fit(X, y)
    assert model.rank_ == rank
    assert len(model.dependent_features_) == X.shape[1] - rank
    B = X - X.mean(axis=0)
    for name, others in model.dependent_features_.items():
        made = sum((c * B[:, int(o[1:])] for o, c in others.items()), np.zeros(40))
        assert_allclose(made, B[:, int(name[1:])], atol=1e-7 * np.abs(B[:, int(name[1:])]).max())
    kept = [j for j in range(X.shape[1]) if f"x{j}" not in model.dependent_features_]
    assert np.linalg.matrix_rank(A[:, kept] - A[:, kept].mean(axis=0)) == len(kept)


def test_many_dependent_features_are_chosen_by_pivoting(monkeypatch):
    monkeypatch.setattr("epicycle.linalg._dependencies.MAX_ELIMINATION", 0)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 9))
    null = np.linalg.svd(X)[2][4:].T
    found = dependencies_of(null, np.linalg.norm(X, axis=0))
    assert len(found.dependent) == 5
    assert_allclose(X[:, found.independent] @ found.combination, X[:, found.dependent], atol=1e-10)


def test_sparse_rows_join_dense_ones():
    """Second moments of sparse features are about the origin, those of dense ones about a point near the mean."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 5
    y = X @ [1.0, -2.0, 3.0] + rng.normal(size=60)
    whole = LinearRegression().fit(X, y)
    for first, second in ((X[:30], sp.csr_array(X[30:])), (sp.csr_array(X[:30]), X[30:])):
        parts = LinearRegression().partial_fit(first, y[:30]).partial_fit(second, y[30:])
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10)
        np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-9)
