"""Instrumental variables: statsmodels, definitions by search, sets of Anderson and Rubin of every shape, coverage."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize_scalar
from statsmodels.sandbox.regression.gmm import IV2SLS, IVGMM

from epicycle.causal import InstrumentalVariables
from epicycle.exceptions import DataError, NotFittedError, ParameterError


def problem(seed=0, n=400, instruments=3, strength=0.5, controls=2, effect=1.5):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, controls)), rng.normal(size=(n, instruments))
    u = rng.normal(size=n)
    d = strength * Z.sum(axis=1) + X.sum(axis=1) + u + rng.normal(size=n)
    y = effect * d + 2 * u + X @ np.arange(1, controls + 1) + rng.normal(size=n) * (1 + (Z[:, 0] > 0))
    return X, y, d, Z


def test_two_stages_are_those_of_statsmodels():
    X, y, d, Z = problem()
    model = InstrumentalVariables(covariance="classical").fit(X, y, treatment=d, instruments=Z)
    W = sm.add_constant(X)
    reference = IV2SLS(y, np.column_stack([d, W]), np.column_stack([Z, W])).fit()
    assert model.effect_ == pytest.approx(reference.params[0], rel=1e-10)
    assert model.standard_error_ == pytest.approx(reference.bse[0], rel=1e-10)
    assert_allclose(model.interval_, reference.conf_int()[0], rtol=1e-8)
    assert model.certificate_.holds
    first = sm.OLS(d, np.column_stack([Z, W])).fit()
    F = first.f_test(np.eye(3, 6))
    assert model.first_stage_F_.statistic == pytest.approx(float(F.fvalue), rel=1e-9)
    assert_allclose(model.first_stage_, first.params[:3], rtol=1e-9)
    augmented = sm.OLS(y, np.column_stack([first.resid, d, W])).fit()
    assert model.endogeneity_.statistic == pytest.approx(augmented.tvalues[0] ** 2, rel=1e-8)
    assert model.endogeneity_.p_value == pytest.approx(augmented.pvalues[0], rel=1e-6, abs=1e-300)
    residual = y - np.column_stack([d, W]) @ reference.params
    sargan = len(y) * sm.OLS(residual, np.column_stack([Z, W])).fit().rsquared
    assert model.overidentification_.statistic == pytest.approx(sargan, rel=1e-8)
    assert "not weak" in str(model.summary())


def test_robust_errors_follow_the_formula_and_hansen_is_statsmodels():
    X, y, d, Z = problem(1)
    groups = np.arange(len(y)) // 8
    W = sm.add_constant(X)
    D, A = np.column_stack([d, W]), np.column_stack([Z, W])
    P = A @ np.linalg.solve(A.T @ A, A.T @ D)
    inverse = np.linalg.inv(P.T @ D)
    n, k = D.shape
    e = y - D @ (inverse @ P.T @ y)
    robust = inverse @ (P.T * e**2) @ P @ inverse.T * n / (n - k)
    sums = np.array([(P[groups == g] * e[groups == g, None]).sum(0) for g in range(50)])
    clustered = inverse @ sums.T @ sums @ inverse.T * 50 / 49 * (n - 1) / (n - k)
    fit = InstrumentalVariables().fit
    model = fit(X, y, treatment=d, instruments=Z)
    assert model.standard_error_ == pytest.approx(np.sqrt(robust[0, 0]), rel=1e-9)
    J = model.overidentification_.statistic
    assert fit(X, y, treatment=d, instruments=Z, groups=groups).standard_error_ == pytest.approx(
        np.sqrt(clustered[0, 0]), rel=1e-9
    )
    gmm = IVGMM(y, D, A).fit(maxiter=2, optim_args={"disp": 0}, inv_weights=A.T @ A / n)
    assert pytest.approx(gmm.jtest()[0], rel=1e-5) == J
    one = fit(X, y, treatment=d, instruments=Z[:, 0])
    first = sm.OLS(d, np.column_stack([Z[:, 0], W])).fit(cov_type="HC1")
    assert one.effective_F_ == pytest.approx(first.tvalues[0] ** 2, rel=1e-9)  # one instrument: the robust F
    assert one.effective_F_critical_ == pytest.approx(23.1, abs=0.05)  # table 1 of Montiel Olea and Pflueger
    assert one.overidentification_ is None


@given(st.integers(0, 2**32))
def test_liml_minimises_the_ratio_of_anderson_and_rubin(seed):
    X, y, d, Z = problem(seed, n=80, strength=0.3)
    model = InstrumentalVariables("liml").fit(X, y, treatment=d, instruments=Z)
    W = sm.add_constant(X)

    def ratio(b):
        u = y - b * d
        short, long = sm.OLS(u, W).fit().ssr, sm.OLS(u, np.column_stack([W, Z])).fit().ssr
        return short / long

    best = minimize_scalar(ratio, bracket=(model.effect_ - 0.1, model.effect_ + 0.1), tol=1e-12)
    assert model.kappa_ == pytest.approx(best.fun, rel=1e-8)
    assert ratio(model.effect_) == pytest.approx(best.fun, rel=1e-8)
    fuller = InstrumentalVariables("fuller").fit(X, y, treatment=d, instruments=Z)
    assert fuller.kappa_ == pytest.approx(best.fun - 1 / (80 - 3 - 3), rel=1e-8)


@given(st.integers(0, 2**32), st.sampled_from(["robust", "classical"]), st.floats(0.0, 0.6), st.integers(1, 3))
def test_anderson_rubin_sets_are_what_the_test_leaves(seed, covariance, strength, instruments):
    X, y, d, Z = problem(seed, n=60, strength=strength, instruments=instruments)
    model = InstrumentalVariables(covariance=covariance).fit(X, y, treatment=d, instruments=Z)
    found = model.anderson_rubin()
    grid = model.effect_ + np.concatenate([-np.logspace(4, -1, 8), np.logspace(-1, 4, 8)])
    away = ~np.isclose(grid[:, None], found.intervals.ravel()[None], rtol=1e-6).any(axis=1)
    A = np.column_stack([Z, np.ones(60), X])
    inverse = np.linalg.inv(A.T @ A)
    l, df = instruments, 60 - 3 - instruments  # noqa: E741
    for b in grid[away]:
        # The regression of y - b d on instruments and controls: Wald's test that the instruments have no effect.
        coef = inverse @ (A.T @ (y - b * d))
        e = y - b * d - A @ coef
        V = e @ e / df * inverse if covariance == "classical" else inverse @ (A.T * e**2) @ A @ inverse * 60 / df
        p = stats.f.sf(coef[:l] @ np.linalg.solve(V[:l, :l], coef[:l]) / l, l, df)
        assert (b in found) == (p >= 0.05), (b, p, found)


def test_anderson_rubin_sets_of_every_shape():
    shapes = {}
    for seed in range(60):
        X, y, d, Z = problem(seed, n=60, strength=(0.0, 0.15, 1.0)[seed % 3], instruments=2)
        y = y + (seed % 4 == 3) * 3 * Z[:, 0]  # an instrument that acts by itself
        found = InstrumentalVariables().fit(X, y, treatment=d, instruments=Z).anderson_rubin()
        shapes.setdefault(found.kind, found)
    assert {"interval", "two rays", "whole line", "empty"} <= set(shapes)
    assert 1e300 in shapes["whole line"]
    assert "cannot all be valid" in str(shapes["empty"])


def test_scale_and_order_of_rows_do_not_matter():
    X, y, d, Z = problem(3, n=100)
    plain = InstrumentalVariables().fit(X, y, treatment=d, instruments=Z)
    order = np.random.default_rng(0).permutation(100)
    other = InstrumentalVariables().fit(X[order], 7 * y[order], treatment=-2 * d[order], instruments=1e4 * Z[order])
    assert other.effect_ == pytest.approx(-3.5 * plain.effect_, rel=1e-9)
    assert other.standard_error_ == pytest.approx(3.5 * plain.standard_error_, rel=1e-9)
    assert_allclose(other.anderson_rubin().intervals, -3.5 * plain.anderson_rubin().intervals[::-1, ::-1], rtol=1e-6)


def test_what_cannot_be_estimated_is_named():
    X, y, d, Z = problem(0, n=30)
    fit = InstrumentalVariables().fit
    with pytest.raises(DataError, match="instruments: a column is constant"):
        fit(X, y, treatment=d, instruments=np.column_stack([Z, Z[:, 0] + X[:, 0]]))
    with pytest.raises(DataError, match="treatment: has 29 rows"):
        fit(X, y, treatment=d[1:], instruments=Z)
    with pytest.raises(DataError, match="y: has 6 rows"):
        fit(X[:6], y[:6], treatment=d[:6], instruments=Z[:6])
    wide = np.random.default_rng(0).normal(size=(4, 5))
    with pytest.raises(DataError, match="5 columns and a constant in n_samples=4 rows"):
        fit(wide, y[:4], treatment=d[:4], instruments=Z[:4], sample_weight=np.full(4, 10.0))
    with pytest.raises(ParameterError, match="method"):
        InstrumentalVariables("ols").fit(X, y, treatment=d, instruments=Z)
    with pytest.raises(NotFittedError):
        InstrumentalVariables().summary()
