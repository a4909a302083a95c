"""Intervals cover, tests reject as often as they say, quantile residuals are normal: by simulation."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from numpy.testing import assert_allclose

from epicycle import GeneralizedLinearModel
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.linear import families

N = 120


def draw(family, eta, rng):
    mu = np.exp(eta)
    if family == "poisson":
        return rng.poisson(mu).astype(float)
    if family == "gamma":
        return rng.gamma(2.0, mu / 2)
    if family == "binomial":
        return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)
    return eta + rng.standard_normal(len(eta))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "binomial"])
def test_intervals_and_tests_are_as_good_as_they_say(family):
    rng = np.random.default_rng(5)
    rounds, inside, rejected = 100, 0, np.zeros(3)
    truth = np.array([0.4, 0.3, 0.0, 0.0])  # intercept first
    for _ in range(rounds):
        X = rng.standard_normal((N, 3))
        y = draw(family, truth[0] + X @ truth[1:], rng)
        big = GeneralizedLinearModel(family).fit(X, y)
        small = GeneralizedLinearModel(family).fit(X[:, :1], y)
        table = big.summary(0.9)
        inside += np.sum((table["[0.05"] <= truth) & (truth <= table["0.95]"]))
        p_values = [
            table[next(c for c in table.columns if c.startswith("P>"))][3],
            big.likelihood_ratio_test(small, X, y).p_value,
            small.score_test(X, y).p_value,
        ]
        rejected += np.array(p_values) < 0.1
    assert abs(inside / (4 * rounds) - 0.9) < 0.045
    assert (np.abs(rejected / rounds - 0.1) < 0.09).all()  # three standard errors


@pytest.mark.parametrize("family", ["poisson", "gamma", "gaussian"])
def test_nested_models(family):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((N, 4)), columns=list("abcd"))
    y = draw(family, 0.3 * frame["b"].to_numpy(), rng)
    big = GeneralizedLinearModel(family).fit(frame, y)
    small = GeneralizedLinearModel(family).fit(frame[["b", "d"]], y)
    theirs = {
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
        "gaussian": sm.families.Gaussian(),
    }[family]
    reduced = sm.GLM(y, sm.add_constant(frame[["b", "d"]]), family=theirs).fit(tol=1e-12)
    full = sm.GLM(y, sm.add_constant(frame), family=theirs).fit(tol=1e-12)
    result = big.likelihood_ratio_test(small, frame, y)
    fall = reduced.deviance - full.deviance
    if family == "poisson":
        assert_allclose([result.statistic, result.p_value], [fall, scipy.stats.chi2.sf(fall, 2)], rtol=1e-6)
    else:
        F = fall / 2 / full.scale
        assert_allclose([result.statistic, result.p_value], [F, scipy.stats.f.sf(F, 2, N - 5)], rtol=1e-6)
    score = small.score_test(frame, y)
    expected = reduced.model.score_test(reduced.params, exog_extra=frame[["a", "c"]].to_numpy(), observed=False)
    assert_allclose([score.statistic, score.p_value], [float(np.squeeze(v)) for v in expected[:2]], rtol=1e-5)
    assert score.degrees == result.degrees == 2
    assert "p = " in str(score)


def test_models_that_cannot_be_compared():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), rng.poisson(1.0, 50)
    big, small = (GeneralizedLinearModel("poisson").fit(X[:, :k], y) for k in (3, 2))
    with pytest.raises(DataError, match="other rows"):
        big.likelihood_ratio_test(small, X, y + 1)
    with pytest.raises(DataError, match="smaller model first"):
        big.likelihood_ratio_test(big, X, y)
    with pytest.raises(ParameterError, match="alpha=0"):
        big.likelihood_ratio_test(GeneralizedLinearModel("poisson", alpha=1.0).fit(X[:, :2], y), X, y)
    with pytest.raises(ParameterError, match="family"):
        big.likelihood_ratio_test(GeneralizedLinearModel().fit(X[:, :2], y), X, y)
    with pytest.raises(ParameterTypeError, match="small"):
        big.likelihood_ratio_test("small", X, y)
    with pytest.raises(DataError, match="no column besides"):
        big.score_test(X, y)


@pytest.mark.parametrize(
    "family",
    [
        "gaussian",
        "poisson",
        "gamma",
        "binomial",
        families.Tweedie(1.5),
        families.NegativeBinomial(0.5),
        "inverse_gaussian",
        "exponential",
    ],
    ids=str,
)
def test_quantile_residuals_are_normal(family):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 2))
    eta = 0.3 + X @ [0.3, -0.2]
    name = getattr(family, "name", family)
    y = {
        "tweedie": lambda: _tweedie(np.exp(eta), rng),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, 3000)),
        "inverse_gaussian": lambda: rng.wald(np.exp(eta), 2.0),
        "exponential": lambda: rng.exponential(np.exp(eta)),
    }.get(name, lambda: draw(name, eta, rng))()
    model = GeneralizedLinearModel(family).fit(X, y)
    r = model.residuals(X, y, "quantile", random_state=0)
    assert scipy.stats.kstest(r, "norm").pvalue > 0.01
    assert np.array_equal(r, model.residuals(X, y, "quantile", random_state=0))
    assert_allclose(np.sum(model.residuals(X, y, "deviance") ** 2), model.deviance_, rtol=1e-9)


def _tweedie(mu, rng):
    phi, p = 0.8, 1.5
    counts = rng.poisson(mu ** (2 - p) / (phi * (2 - p)))
    return rng.gamma(np.maximum(counts, 1e-300) * (2 - p) / (p - 1), phi * (p - 1) * mu ** (p - 1)) * (counts > 0)


def test_penalised_and_singular_fits_say_why_there_are_no_errors():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.poisson(2.0, 60)
    assert "naive standard errors do not hold" in str(GeneralizedLinearModel("poisson", alpha=0.1).fit(X, y).summary())
    twice = np.column_stack([X, X[:, 0]])
    model = GeneralizedLinearModel("poisson").fit(twice, y)
    assert model.certificate_.holds
    assert "depend on each other" in str(model.summary())
    assert model.effective_parameters_ == pytest.approx(4)
    multinomial = GeneralizedLinearModel("multinomial", alpha=1.0).fit(X, y > 1)
    assert "naive standard errors do not hold" in str(multinomial.summary())


def test_dispersion_as_asked_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = rng.poisson(np.exp(X[:, 0] / 3) * rng.gamma(1.0, 1.0, 200))
    auto, pearson, deviance, fixed = (
        GeneralizedLinearModel("poisson", dispersion=d).fit(X, y) for d in ("auto", "pearson", "deviance", 2.5)
    )
    assert auto.dispersion_ == 1
    assert pearson.dispersion_ == auto.pearson_dispersion_ > 1
    assert deviance.dispersion_ == auto.deviance_dispersion_
    ratio = np.sqrt(pearson.dispersion_)
    assert_allclose(pearson.summary()["std err"], ratio * auto.summary()["std err"], rtol=1e-12)  # quasi-Poisson
    assert "t" in pearson.summary().columns
    assert_allclose(fixed.summary()["std err"], np.sqrt(2.5) * auto.summary()["std err"], rtol=1e-12)
    assert pearson.log_likelihood_ == auto.log_likelihood_


def test_effective_parameters_of_a_ridge():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 4)), rng.standard_normal(100)
    model = GeneralizedLinearModel(alpha=0.3).fit(X, y)
    C = X - X.mean(axis=0)
    assert_allclose(
        model.effective_parameters_, 1 + np.trace(np.linalg.solve(C.T @ C / 100 + 0.3 * np.eye(4), C.T @ C / 100))
    )
    lasso = GeneralizedLinearModel(alpha=0.1, l1_ratio=1.0).fit(X, y)
    assert lasso.effective_parameters_ == pytest.approx(1 + np.count_nonzero(lasso.coef_))


@pytest.mark.parametrize("classes", [2, 3])
def test_standard_errors_of_the_multinomial_family(classes):
    """Those of the inverse information of the log-odds against the first class, by numerical derivatives."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(120, 2)), rng.integers(0, classes, size=120)
    model = GeneralizedLinearModel("multinomial").fit(X, np.array(list("abc"))[labels])
    A = np.column_stack([X, np.ones(120)])
    odds = np.column_stack([model.coef_, model.intercept_])
    theta = (odds[1:] - odds[0]).ravel()

    def gradient(theta):
        scores = np.column_stack([np.zeros(120), A @ theta.reshape(classes - 1, 3).T])
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return ((P - np.eye(classes)[labels])[:, 1:].T @ A).ravel()

    h = 1e-5
    steps = h * np.eye(len(theta))
    information = np.array([(gradient(theta + s) - gradient(theta - s)) / (2 * h) for s in steps])
    errors = np.sqrt(np.diag(np.linalg.inv(information))).reshape(classes - 1, 3)
    summary = model.summary()
    rows = summary["std err"].reshape(classes - 1, 3)
    assert_allclose(rows, np.column_stack([errors[:, 2], errors[:, :2]]), rtol=1e-6)  # the intercept comes first
    penalised = GeneralizedLinearModel("multinomial", alpha=0.1).fit(X, labels)
    assert "standard errors do not hold" in penalised.summary().note
