"""The generalized linear models with scikit-learn's names: its coefficients, and those of the general class."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peer
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import get_tags

import epicycle as ep
from epicycle import GammaRegressor, GeneralizedLinearModel, PoissonRegressor, TweedieRegressor
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.linear import families

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)) * [1.0, 0.5, 2.0]
MU = np.exp(0.5 + X @ [0.3, -0.2, 0.1])
COUNTS, SIZES = RNG.poisson(MU), RNG.gamma(2, MU / 2)
WEIGHT = RNG.integers(0, 3, 400).astype(float)
CASES = {
    "poisson": (PoissonRegressor(), peer.PoissonRegressor(), COUNTS, 1),
    "gamma": (GammaRegressor(), peer.GammaRegressor(), SIZES, 2),
    "normal": (TweedieRegressor(), peer.TweedieRegressor(), MU - 2, 0),
    "normal, log": (TweedieRegressor(link="log"), peer.TweedieRegressor(link="log"), SIZES, 0),
    "compound": (TweedieRegressor(power=1.5), peer.TweedieRegressor(power=1.5), COUNTS * SIZES, 1.5),
    "inverse Gaussian": (TweedieRegressor(power=3), peer.TweedieRegressor(power=3), SIZES + 0.1, 3),
    "negative power": (TweedieRegressor(power=-1), peer.TweedieRegressor(power=-1), SIZES + 5, -1),
}


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cholesky"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_same_as_scikit_learn(case, intercept, solver):
    ours, theirs, y, power = CASES[case]
    if case == "negative power" and not intercept:
        return  # no start at which every mean is positive
    ours = type(ours)(**{**ours.get_params(), "alpha": 0.1, "fit_intercept": intercept, "solver": solver})
    theirs.set_params(alpha=0.1, fit_intercept=intercept, tol=1e-10, max_iter=10_000, solver="lbfgs")
    ours.fit(X, y, WEIGHT)
    theirs.fit(X, y, WEIGHT)
    assert_allclose(ours.coef_, theirs.coef_, rtol=2e-5, atol=1e-7)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=2e-5, atol=1e-7)
    assert ours.certificate_.holds
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)
    if power >= 0:
        assert ours.score(X, y) == pytest.approx(d2_tweedie_score(y, ours.predict(X), power=power), abs=1e-9)


def test_the_same_as_the_general_class():
    model = PoissonRegressor(alpha=0.2, tol=1e-12).fit(X, COUNTS, WEIGHT, exposure=SIZES)
    general = GeneralizedLinearModel("poisson", alpha=0.2, tol=1e-14).fit(X, COUNTS, WEIGHT, exposure=SIZES)
    assert_allclose(model.coef_, general.coef_, rtol=1e-6)
    assert model.deviance_ == pytest.approx(general.deviance_, rel=1e-9)
    unpenalised = TweedieRegressor(power=1.5, alpha=0).fit(X, COUNTS * SIZES)
    reference = GeneralizedLinearModel(families.Tweedie(1.5)).fit(X, COUNTS * SIZES)
    assert_allclose(unpenalised.summary()["std err"], reference.summary()["std err"], rtol=1e-6)


def test_files_sparse_rows_and_float32(tmp_path):
    reference = PoissonRegressor().fit(X, COUNTS).coef_
    assert_allclose(PoissonRegressor().fit(sp.csr_array(X), COUNTS).coef_, reference, rtol=1e-8)
    frame = pd.DataFrame({**{f"x{j}": X[:, j] for j in range(3)}, "y": COUNTS})
    frame.to_parquet(tmp_path / "counts.parquet")
    assert_allclose(
        PoissonRegressor().fit(ep.scan(tmp_path / "counts.parquet", target="y")).coef_, reference, rtol=1e-8
    )
    single = PoissonRegressor().fit(frame[["x0", "x1", "x2"]].astype(np.float32), COUNTS)
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, reference, rtol=1e-5)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    model = PoissonRegressor(warm_start=True, max_iter=1, solver="lbfgs")
    with pytest.warns(ConvergenceWarning):
        model.fit(X, COUNTS)
    rough = model.coef_
    whole = PoissonRegressor().fit(X, COUNTS)
    assert np.abs(rough - whole.coef_).max() > 1e-6
    model.set_params(max_iter=1000, solver="auto").fit(X, COUNTS)
    assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    assert model.fit(X, COUNTS).n_iter_ == 1  # nothing is left to do
    assert model.history_.objective[0] <= whole.history_.objective[-1]


@pytest.mark.parametrize("model", [PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=3)])
def test_responses_out_of_range_are_refused(model):
    with pytest.raises(DataError, match=r"Some value\(s\) of y are out of the valid range of the loss"):
        model.fit(X, MU - 5)


def test_no_distribution_has_a_power_between_zero_and_one():
    with pytest.raises(ParameterError, match=r"power=0.5; expected a real number <= 0 or a real number >= 1"):
        TweedieRegressor(power=0.5).fit(X, SIZES)
    assert get_tags(TweedieRegressor(power=1.5)).target_tags.positive_only
    assert not get_tags(TweedieRegressor(power=0)).target_tags.positive_only


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([PoissonRegressor, GammaRegressor]), st.sampled_from([0.01, 1.0]))
def test_whole_weights_are_repetitions(seed, cls, alpha):
    rng = np.random.default_rng(seed)
    rows, weight = rng.normal(size=(25, 2)), rng.integers(1, 4, size=25)
    y = rng.gamma(2, np.exp(rows[:, 0])) + 0.01
    coef = cls(alpha=alpha).fit(rows, y, weight).coef_
    assert_allclose(cls(alpha=alpha).fit(np.repeat(rows, weight, axis=0), np.repeat(y, weight)).coef_, coef, rtol=1e-6)
    assert_allclose(cls(alpha=alpha).fit(rows, y, 7.0 * weight).coef_, coef, rtol=1e-6)
