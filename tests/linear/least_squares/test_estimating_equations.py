"""Laplace's combination of equations, and the theorem of Gauss and Markov about it."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import EstimatingEquations, HuberRegressor, JamesStein, LinearRegression
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

RULES = ["laplace", "mayer", "sign", "least_squares"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + np.array([0.0, 50.0, -1.0])
    return X, X @ [1.0, -0.5, 2.0] + 4 + rng.normal(size=200), rng.uniform(0.2, 2, size=200)


def absolute_value(X):
    return np.column_stack([np.abs(X), np.ones(len(X))])


def by_hand(X, y, s, W):
    A = np.column_stack([X, np.ones(len(X))])
    return np.linalg.solve(W.T @ (s[:, None] * A), W.T @ (s * y))


def test_weights_by_hand(data):
    X, y, s = data
    z = (X - np.average(X, axis=0, weights=s)) / np.sqrt(
        np.average((X - np.average(X, axis=0, weights=s)) ** 2, axis=0, weights=s)
    )
    ones = np.ones((len(X), 1))
    most = np.where((z.argmax(axis=1)[:, None] == np.arange(3)) & (z > 0), 1.0, 0.0)
    weights = {
        "least_squares": np.hstack([X, ones]),
        "sign": np.hstack([np.sign(z), ones]),
        "laplace": np.hstack([np.sign(z) * (np.abs(z) > 0.5), ones]),
        "mayer": np.hstack([most, 1 - most.sum(axis=1, keepdims=True)]),
    }
    for rule, W in weights.items():
        expected = by_hand(X, y, s, W)
        for given_as in (rule, W):
            model = EstimatingEquations(weights=given_as).fit(X, y, s)
            assert_allclose(model.coef_, expected[:3], rtol=1e-8)
            assert model.intercept_ == pytest.approx(expected[3], rel=1e-8)
            assert model.certificate_.holds
            assert model.certificate_.value < 1e-14
            assert_allclose(W.T @ (s * (y - model.predict(X))), 0, atol=1e-8)


def test_mayers_groups_are_disjoint_and_whole():
    """Every equation enters exactly one sum, so the sums add up to the sum of all."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(27, 2)), rng.normal(size=27)
    model = EstimatingEquations(weights="mayer").fit(X, y)
    z = X - X.mean(axis=0)
    group = np.where(z.max(axis=1) > 0, (z / X.std(axis=0)).argmax(axis=1), 2)
    residual = y - model.predict(X)
    for g in range(3):
        assert residual[group == g].sum() == pytest.approx(0, abs=1e-12)


def test_one_feature_by_mayer_is_the_line_through_two_centres():
    x = np.array([1.0, 2.0, 3.0, 10.0, 11.0])
    y = np.array([1.0, 0.0, 2.0, 7.0, 9.0])
    model = EstimatingEquations(weights="mayer").fit(x[:, None], y)
    assert model.coef_[0] == pytest.approx((8 - 1) / (10.5 - 2))


def test_least_squares_is_least_squares(data):
    X, y, s = data
    Y = np.column_stack([y, y**2])
    ours = EstimatingEquations(weights="least_squares").fit(X, Y, s)
    theirs = LinearRegression().fit(X, Y, s)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10)
    for target in (0, 1):
        assert_allclose(ours.summary(target=target)["std err"], theirs.summary(target=target)["std err"], rtol=1e-9)
        assert_allclose(ours.summary(target=target)["P>|t|"], theirs.summary(target=target)["P>|t|"], atol=1e-9)
    assert_allclose(ours.efficiency(), 1, rtol=1e-10)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([*RULES, "callable"]), st.booleans(), st.booleans())
def test_gauss_markov(seed, p, rule, intercept, weighted):
    """Covariance of any choice less that of least squares is positive semi-definite."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4 * p + 8, 80))
    X, y = rng.normal(size=(n, p)) + rng.normal(size=p), rng.normal(size=n)
    s = rng.uniform(0.1, 3, size=n) if weighted else None
    weights = (absolute_value if intercept else np.abs) if rule == "callable" else rule
    model = EstimatingEquations(weights=weights, fit_intercept=intercept).fit(X, y, s)
    if model.rank_ < p + intercept:
        return
    excess = model._unscaled_ - model._least_squares_
    d = p + intercept
    excess = excess if intercept else excess[:d, :d]
    size = np.sqrt(np.outer(np.diag(model._unscaled_)[:d], np.diag(model._unscaled_)[:d]))
    assert np.linalg.eigvalsh(excess / size).min() > -1e-8
    assert (model.efficiency() <= 1 + 1e-10).all()
    assert (model.efficiency() > 0).all()


@pytest.mark.slow
def test_simulated_variances_are_those_that_are_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    fits = {rule: [] for rule in RULES}
    for _ in range(400):
        y = 1 + X @ [2.0, -1.0] + rng.normal(size=60)
        for rule, found in fits.items():
            found.append(EstimatingEquations(weights=rule).fit(X, y).coef_)
    variances = {rule: np.var(found, axis=0) for rule, found in fits.items()}
    for rule in RULES:
        model = EstimatingEquations(weights=rule).fit(X, y)
        assert_allclose(np.mean(fits[rule], axis=0), [2, -1], atol=4 * np.sqrt(variances[rule].max() / 400))  # unbiased
        assert_allclose(variances["least_squares"] / variances[rule], model.efficiency()[:2], rtol=0.25)
        assert (variances[rule] >= variances["least_squares"] * 0.999).all()  # the ordering of Gauss and Markov


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rule"), [("classical", "laplace"), ("robust", "laplace"), ("robust", "mayer")])
def test_intervals_cover(kind, rule):
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(400):
        X = rng.normal(size=(150, 2))
        noise = rng.normal(size=150) * (np.abs(X[:, 0]) + 0.5 if kind == "robust" else 1.0)
        summary = EstimatingEquations(weights=rule).fit(X, 1 + X @ [2.0, -1.0] + noise).summary(kind=kind)
        truth = np.array([1.0, 2.0, -1.0])
        inside.append((summary["[0.025"] <= truth) & (truth <= summary["0.975]"]))
    share = np.mean(inside, axis=0)
    assert (share > 0.91).all(), share
    assert (share < 0.99).all(), share


def test_instruments_see_through_a_confounder():
    """x is correlated with the noise, z is not: least squares is biased, the equations weighted with z are not."""
    rng = np.random.default_rng(0)
    n = 20_000
    z, u = rng.normal(size=n), rng.normal(size=n)
    x = z + u + 0.1 * rng.normal(size=n)
    y = 2 * x + 3 * u
    biased = LinearRegression().fit(x[:, None], y).coef_[0]
    W = np.column_stack([z, np.ones(n)])
    model = EstimatingEquations(weights=W).fit(x[:, None], y)
    assert abs(biased - 2) > 1
    assert model.coef_[0] == pytest.approx(2, abs=4 * model.summary(kind="robust")["std err"][1])
    assert model.coef_[0] == pytest.approx(np.cov(z, y)[0, 1] / np.cov(z, x)[0, 1], rel=1e-9)


def test_everywhere_the_same(data, tmp_path):
    X, y, s = data
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, w=s)
    for i in range(3):
        frame.iloc[i * 70 : (i + 1) * 70].to_parquet(tmp_path / f"{i}.parquet", index=False)
    files = ep.scan(str(tmp_path / "*.parquet"), target="y", weight="w", columns=list("abc"))
    arrays = [da.from_array(v, chunks=(60, *v.shape[1:])) for v in (X, y, s)]
    W = absolute_value(X) + X.sum(axis=1)[:, None] ** np.arange(4)
    for weights in (*RULES, absolute_value):
        expected = EstimatingEquations(weights=weights).fit(X, y, s)
        for other in (
            EstimatingEquations(weights=weights).fit(files),
            EstimatingEquations(weights=weights).fit(*arrays),
            EstimatingEquations(weights=weights).fit(sp.csr_array(X), y, s),
        ):
            assert_allclose(other.coef_, expected.coef_, rtol=1e-8)
            assert_allclose(other.covariance(kind="robust"), expected.covariance(kind="robust"), rtol=1e-6, atol=1e-12)
    assert_allclose(EstimatingEquations(weights=W).fit(files).coef_, by_hand(X, y, s, W)[:3], rtol=1e-6)
    with pytest.raises(DataError, match="weights: an array"):
        EstimatingEquations(weights=W).fit(*arrays)


def test_float32_stays(data):
    X, y, _ = data
    model = EstimatingEquations().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32


def test_equations_that_contradict_are_said(data):
    X, y, _ = data
    W = np.column_stack([X[:, 0], X[:, 0], X[:, 1] ** 2, np.sign(X[:, 2])])
    W[:, 1] *= 2
    W[0, 1] += 1  # nearly, but not quite the same equation: solvable
    assert EstimatingEquations(weights=W).fit(X, y).rank_ == 4
    dependent = np.column_stack([X[:, :2], X[:, 0] + X[:, 1]])
    with pytest.warns(ConvergenceWarning, match="equation residual"):
        model = EstimatingEquations(weights=np.column_stack([X, np.ones(200)])).fit(dependent, y)
    assert model.rank_ == 3
    assert not model.certificate_.holds
    assert "independent" in model.summary().note


@pytest.mark.parametrize("weights", [np.ones((200, 3)), np.ones((199, 4)), np.ones(200), [["a"] * 4] * 200, "gauss"])
def test_bad_weights(data, weights):
    X, y, _ = data
    with pytest.raises(ParameterError, match="weights"):
        EstimatingEquations(weights=weights).fit(X, y)
    with pytest.raises(DataError, match=r"weights: expected shape \(200, 4\)"):
        EstimatingEquations(weights=np.abs).fit(X, y)


@pytest.mark.parametrize("model", [EstimatingEquations(), JamesStein(), LinearRegression(), HuberRegressor(alpha=0.0)])
def test_coefficients_beyond_float32_are_stored_as_float64(model):
    X = np.array([[0.0], [1e-38], [2e-38], [3e-38], [1e-38]], dtype=np.float32)
    y = np.array([0.0, 100.0, 200.0, 300.0, 101.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.coef_.dtype == np.float64
    assert_allclose(model.predict(X), y, atol=3)
