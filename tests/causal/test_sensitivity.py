"""E-values, Rosenbaum's bounds and omitted-variable bias against published figures; refutations of planted faults."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm, rankdata, t as student
from sklearn.base import BaseEstimator

from epicycle.causal import (
    OmittedVariableBias,
    e_value,
    omitted_variable_bias,
    refute,
    rosenbaum_bounds,
)
from epicycle.exceptions import DataError, ParameterError


def test_e_values_of_vanderweele_and_ding():
    """Annals of Internal Medicine 167 (2017), also in the tests of the authors' package EValue (cases of the Annals).

    Smoking and lung cancer is the table 397, 78557, 51, 108778 of Hammond and Horn, 20.95 and 15.52 in section 17.3
    of Ding, *A First Course in Causal Inference* (2024); the other is breastfeeding and death by respiratory infection.
    """
    smoking = e_value(10.73, (8.02, 14.36))
    assert (round(smoking.point, 2), round(smoking.limit, 2)) == (20.95, 15.52)
    feeding = e_value(3.9, (1.8, 8.7))
    assert (round(feeding.point, 1), round(feeding.limit, 1)) == (7.3, 3.0)
    assert e_value(1 / 3.9, (1 / 8.7, 1 / 1.8)).limit == pytest.approx(feeding.limit)  # protective effects alike
    assert e_value(1.2, (0.9, 1.6)).limit == 1
    assert e_value(4.0, kind="odds_ratio").risk_ratio == 2
    assert e_value(4.0, kind="odds_ratio", rare=True).risk_ratio == 4
    assert e_value(2.0, kind="hazard_ratio").risk_ratio == pytest.approx((1 - 0.5**2**0.5) / (1 - 0.5**0.5**0.5))
    difference = e_value(0.5, kind="difference", standard_error=0.1)
    assert difference.limit == pytest.approx(e_value(np.exp(0.91 * 0.5 - 1.78 * 0.1)).point)
    assert "explain the estimate away" in str(smoking)
    with pytest.raises(ParameterError, match="interval"):
        e_value(2.0, (3.0, 4.0))


@given(st.floats(1.0, 50.0))
def test_the_bounding_factor_of_the_e_value_is_the_risk_ratio(ratio):
    E = e_value(ratio).point
    assert pytest.approx(ratio, rel=1e-9) == E * E / (2 * E - 1)


#: Lead in the blood of 33 children of workers in a battery plant and of their neighbours (Morton et al. 1982).
EXPOSED = [38, 23, 41, 18, 37, 36, 23, 62, 31, 34, 24, 14, 21, 17, 16, 20, 15, 10, 45, 39, 22, 35, 49, 48, 44, 35, 43]
EXPOSED += [39, 34, 13, 73, 25, 27]
NEIGHBOUR = [16, 18, 18, 24, 19, 11, 10, 15, 16, 18, 18, 13, 19, 10, 16, 16, 24, 13, 9, 14, 21, 19, 7, 18, 19, 12, 11]
NEIGHBOUR += [22, 25, 16, 13, 11, 13]


def test_lead_of_rosenbaums_observational_studies():
    """Chapter 4 of the second edition (2002): 0.0388, 0.0468 and 0.0740; the pairs are those of rbounds::psens in R."""
    found = rosenbaum_bounds(EXPOSED, NEIGHBOUR, gamma=[1, 4, 4.25, 5])
    assert found.statistic == 527
    assert_allclose(found.upper[1:], [0.0388, 0.0468, 0.0740], atol=5e-5)
    assert found.upper[0] == found.lower[0] < 1e-4
    assert rosenbaum_bounds(EXPOSED, NEIGHBOUR, gamma=found.critical_gamma).upper[0] == pytest.approx(0.05)
    assert "above 4.3" in str(found)
    with pytest.raises(ParameterError, match="gamma"):
        rosenbaum_bounds(EXPOSED, NEIGHBOUR, gamma=0.5)
    with pytest.raises(DataError, match="every difference is zero"):
        rosenbaum_bounds(EXPOSED, EXPOSED)


def test_rosenbaums_moments_are_those_of_all_signs():
    d = np.array([1.0, -2.0, 2.0, 4.0, 7.0, -0.5, 3.0, 5.0])
    q, p = rankdata(np.abs(d)), 2 / 3
    signs = np.array(list(product([0, 1], repeat=8)))
    weight = p ** signs.sum(axis=1) * (1 - p) ** (8 - signs.sum(axis=1))
    sums = signs @ q
    mean = weight @ sums
    sd = np.sqrt(weight @ (sums - mean) ** 2)
    found = rosenbaum_bounds(d, gamma=2)
    assert found.upper[0] == pytest.approx(norm.sf((found.statistic - mean) / sd), rel=1e-12)


def test_darfur_of_cinelli_and_hazlett():
    """Section 5 of the paper (Journal of the Royal Statistical Society B 82, 2020).

    All digits are those that the tests of the authors' package sensemakr hold for it (test-02-darfur.R); the strengths
    of "female" are those that its bound for one such variable comes from, those for two and three follow.
    """
    darfur = OmittedVariableBias(0.09731582, 0.02325654, 783, {"female": (0.00908106519, 0.10903391543)})
    assert darfur.partial_r2 == pytest.approx(0.02187309, abs=1e-7)
    assert darfur.robustness_value() == pytest.approx(0.1387764, abs=1e-7)
    assert darfur.robustness_value(alpha=0.05) == pytest.approx(0.07625797, abs=1e-7)
    table = darfur.bounds()
    assert_allclose(table["R2 treatment"], [0.009164287, 0.018328573, 0.02749286], atol=1e-9)
    assert_allclose(table["R2 outcome"], [0.124640923, 0.249324064, 0.374050471], atol=1e-9)
    assert_allclose(table["effect"], [0.07522027, 0.05291517, 0.03039602], atol=1e-8)
    assert "13.9%" in str(darfur)
    ax = darfur.plot()
    assert len(ax.get_legend().get_texts()) == 3
    plt.close(ax.figure)


@given(st.integers(0, 2**32))
def test_the_bias_of_an_omitted_column_is_exact(seed):
    rng = np.random.default_rng(seed)
    z, X = rng.normal(size=60), rng.normal(size=(60, 2))
    d = z * rng.normal() + X[:, 0] + rng.normal(size=60)
    y = d + z * rng.normal() + X[:, 1] + rng.normal(size=60)
    short = omitted_variable_bias(X, y, d)
    reference = sm.OLS(y, sm.add_constant(np.column_stack([d, X]))).fit()
    assert_allclose([short.estimate, short.standard_error], [reference.params[1], reference.bse[1]], rtol=1e-9)
    assert short.degrees_of_freedom == reference.df_resid
    long = omitted_variable_bias(np.column_stack([X, z]), y, d, benchmarks=[2])
    r_d, r_y = long.benchmarks["X2"]
    effect, error = short.adjusted(r_d, r_y)
    gone = abs(short.estimate - long.estimate)
    assert abs(short.estimate - float(effect)) == pytest.approx(gone, rel=1e-6, abs=1e-9)
    assert float(error) == pytest.approx(long.standard_error, rel=1e-7)
    value = short.robustness_value()
    assert float(short.adjusted(value, value)[0]) == pytest.approx(0, abs=1e-9)
    limit = short.robustness_value(alpha=0.05)
    if 0 < limit < 0.5:
        effect, error = short.adjusted(limit, limit)
        assert abs(effect / error) <= student.ppf(0.975, short.degrees_of_freedom - 1) * (1 + 1e-6)


class Adjusted(BaseEstimator):
    """Least squares with or without the covariates, which is all that `refute` asks for."""

    def __init__(self, adjust=True):
        self.adjust = adjust

    def fit(self, X, y, treatment):
        columns = [np.ones(len(y)), treatment, *(X.T if self.adjust else [])]
        found = sm.OLS(y, np.column_stack(columns)).fit()
        self.effect_, self.standard_error_ = found.params[1], found.bse[1]
        return self


@pytest.fixture(scope="module")
def confounded():
    rng = np.random.default_rng(0)
    X, hidden = rng.normal(size=(600, 3)), rng.normal(size=600)
    t = (X[:, 0] + 0.8 * hidden + rng.normal(size=600) > 0).astype(float)
    y = t + 1.5 * X[:, 0] + hidden + rng.normal(size=600)
    return X, y, t, hidden


def test_planted_confounding_is_found(confounded):
    X, y, t, hidden = confounded
    naive = refute(Adjusted(adjust=False), X, y, t, repeats=6)
    assert not naive["dummy_outcome"].passed
    assert "does not remove the confounding by X" in str(naive)
    assert naive["placebo"].passed  # a lottery is not confounded
    adjusted = refute(Adjusted(), X, y, t, repeats=6)
    assert adjusted.passed
    # What nobody measured shows in an outcome that the treatment cannot move.
    rng = np.random.default_rng(1)
    earlier = hidden + rng.normal(size=600)
    found = refute(Adjusted(), X, y, t, tests=(), negative_control=earlier)
    assert not found["negative_control"].passed
    measured = refute(Adjusted(), np.column_stack([X, hidden]), y, t, tests=(), negative_control=earlier)
    assert measured.passed


class Faulty(Adjusted):
    """Estimators with a planted fault."""

    def __init__(self, fault="constant"):
        self.fault = fault

    def fit(self, X, y, treatment):
        self.adjust = True
        super().fit(X, y, treatment)
        if self.fault == "constant":
            self.effect_ += 1.0
        elif self.fault == "columns":
            self.effect_ += X.shape[1]
        elif self.fault == "few rows":
            self.effect_ = float(y[treatment == 1].max())
            self.standard_error_ = 0.01
        return self


@pytest.mark.parametrize(
    ("fault", "test"), [("constant", "placebo"), ("columns", "random_cause"), ("few rows", "subset")]
)
def test_planted_faults_are_found(confounded, fault, test):
    X, y, t, _ = confounded
    found = refute(Faulty(fault), X, y, t, tests=[test], repeats=8)
    assert not found.passed
    assert "FAILED" in str(found)
    again = refute(Faulty(fault), X, y, t, tests=[test], repeats=8)
    assert np.array_equal(found.tests[0].estimates, again.tests[0].estimates)
    with pytest.raises(ParameterError, match="tests: holds 'prayer'"):
        refute(Adjusted(), X, y, t, tests=["prayer"])
