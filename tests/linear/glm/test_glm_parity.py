"""Coefficients, deviances, likelihoods, standard errors and residuals of statsmodels, and scikit-learn's estimators."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor

from epicycle import GeneralizedLinearModel
from epicycle.linear import families

L = sm.families.links
N = 600


def response(family, mu, rng):
    return {
        "gaussian": lambda: mu + rng.standard_normal(N),
        "binomial": lambda: (rng.random(N) < mu / (1 + mu)).astype(float),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(3.0, mu / 3),
        "inverse_gaussian": lambda: rng.wald(mu, 3.0),
        "tweedie": lambda: rng.poisson(mu) * rng.gamma(2.0, 0.5, N),
        "negative_binomial": lambda: rng.poisson(mu * rng.gamma(2.0, 0.5, N)).astype(float),
    }[family]()


def theirs(family, link):
    links = {
        "identity": L.Identity(),
        "log": L.Log(),
        "logit": L.Logit(),
        "probit": L.Probit(),
        "cloglog": L.CLogLog(),
        "inverse": L.InversePower(),
        "inverse_squared": L.InverseSquared(),
        "sqrt": L.Sqrt(),
    }
    cls = {
        "gaussian": "Gaussian",
        "binomial": "Binomial",
        "poisson": "Poisson",
        "gamma": "Gamma",
        "inverse_gaussian": "InverseGaussian",
        "tweedie": "Tweedie",
        "negative_binomial": "NegativeBinomial",
    }
    extra = {"tweedie": {"var_power": 1.5}, "negative_binomial": {"alpha": 1.0}}.get(family, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels warns of links that are not its favourites
        return getattr(sm.families, cls[family])(links[link], **extra)


CASES = [
    ("gaussian", "identity"),
    ("gaussian", "log"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("poisson", "sqrt"),
    ("poisson", "identity"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("inverse_gaussian", "log"),
    ("inverse_gaussian", "inverse_squared"),
    ("tweedie", "log"),
    ("negative_binomial", "log"),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights and offset"])
@pytest.mark.parametrize(("family", "link"), CASES)
def test_statsmodels(family, link, weighted):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (N, 3))
    y = response(family, np.exp(0.6 + X @ [0.4, -0.3, 0.2]), rng)
    w = rng.uniform(0.5, 2.0, N) if weighted else None
    offset = 0.02 * rng.random(N) if weighted else None
    model = GeneralizedLinearModel(family, link=link).fit(X, y, w, offset=offset)
    keywords = {"var_weights": w, "offset": offset} if weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sm_model = sm.GLM(y, sm.add_constant(X), family=theirs(family, link), **keywords)
        known = model.family_.dispersion is not None
        expected = sm_model.fit(tol=1e-14, maxiter=300, use_t=not known)
        null = expected.null_deviance
    assert model.certificate_.holds
    summary = model.summary()
    assert_allclose(summary["coef"], expected.params, rtol=1e-7, atol=1e-9)
    assert_allclose(summary["std err"], expected.bse, rtol=1e-7)
    assert_allclose(summary["P>|z|" if known else "P>|t|"], expected.pvalues, rtol=1e-6, atol=1e-12)
    assert_allclose(np.column_stack([summary["[0.025"], summary["0.975]"]]), expected.conf_int(), rtol=1e-7, atol=1e-8)
    assert_allclose(model.deviance_, expected.deviance, rtol=1e-9)
    assert_allclose(model.null_deviance_, null, rtol=1e-7)
    assert_allclose(model.dispersion_, expected.scale, rtol=1e-7)
    assert_allclose(model.pearson_dispersion_, expected.pearson_chi2 / expected.df_resid, rtol=1e-7)
    assert_allclose(model.deviance_dispersion_, expected.deviance / expected.df_resid, rtol=1e-7)
    if np.isfinite(expected.llf):
        assert_allclose(model.log_likelihood_, expected.llf, rtol=1e-7)
        assert_allclose(model.aic_, expected.aic, rtol=1e-7)
        assert_allclose(model.bic_, expected.bic_llf, rtol=1e-7)
    given = {"sample_weight": w, "offset": offset}
    names = {
        "response": "resid_response",
        "pearson": "resid_pearson",
        "deviance": "resid_deviance",
        "working": "resid_working",
        "anscombe": "resid_anscombe_unscaled",
    }
    for kind, attribute in names.items():
        if (family, kind) == ("tweedie", "anscombe"):
            continue  # statsmodels has another normalisation there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = np.asarray(getattr(expected, attribute))
        assert_allclose(model.residuals(X, y, kind, **given), wanted, rtol=1e-6, atol=1e-8, err_msg=kind)


def test_successes_and_failures():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    counts = rng.binomial(7, 1 / (1 + np.exp(-X @ [0.5, -0.5])))
    pairs = np.column_stack([counts, 7 - counts])
    model = GeneralizedLinearModel("binomial").fit(X, pairs)
    expected = sm.GLM(pairs, sm.add_constant(X), family=sm.families.Binomial()).fit(tol=1e-14)
    assert_allclose(model.summary()["coef"], expected.params, rtol=1e-8)
    assert_allclose(model.summary()["std err"], expected.bse, rtol=1e-8)
    assert_allclose([model.log_likelihood_, model.deviance_], [expected.llf, expected.deviance], rtol=1e-9)
    shares = GeneralizedLinearModel("binomial").fit(X, counts / 7, np.full(N, 7.0))
    assert_allclose(shares.coef_, model.coef_, rtol=1e-10)


def test_exposure_is_an_offset_of_its_logarithm():
    rng = np.random.default_rng(0)
    X, e = rng.standard_normal((N, 2)), rng.uniform(0.2, 3.0, N)
    y = rng.poisson(e * np.exp(0.2 * X[:, 0]))
    a = GeneralizedLinearModel("poisson").fit(X, y, exposure=e)
    b = GeneralizedLinearModel("poisson").fit(X, y, offset=np.log(e))
    c = GeneralizedLinearModel("poisson").fit(X, y / e, e)
    assert_allclose(a.coef_, b.coef_, rtol=1e-12)
    assert_allclose(a.coef_, c.coef_, rtol=1e-7)
    assert_allclose(a.predict(X, exposure=e), e * a.predict(X), rtol=1e-12)
    assert a.score(X, y, exposure=e) == pytest.approx(1 - a.deviance_ / a.null_deviance_)
    assert_allclose(a.predict_linear(X[:3]), np.log(a.predict(X[:3])))


@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        ("poisson", PoissonRegressor(alpha=0.1, tol=1e-10, solver="newton-cholesky")),
        ("gamma", GammaRegressor(alpha=0.1, tol=1e-10, solver="newton-cholesky")),
        ("tweedie", TweedieRegressor(power=1.5, alpha=0.1, tol=1e-10, solver="newton-cholesky")),
    ],
)
def test_scikit_learn(ours, peer):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4)) * [1, 5, 0.2, 1]
    y, w = response(ours, np.exp(0.2 * X[:, 0]), rng), rng.integers(0, 4, N).astype(float)
    peer.fit(X, y, w)
    model = GeneralizedLinearModel(ours, alpha=0.1, tol=1e-14).fit(X, y, w)
    assert_allclose(model.coef_, peer.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.score(X, y, w), peer.score(X, y, w), rtol=1e-9)


def test_binomial_is_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    y = (rng.random(N) < 0.4).astype(float)
    model = GeneralizedLinearModel("binomial", alpha=1 / N, tol=1e-14).fit(X, y)
    peer = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(X, y)
    assert_allclose(model.coef_, peer.coef_[0], rtol=1e-6)


def test_multinomial_is_softmax_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    y = np.array(list("abc"))[rng.integers(0, 3, N)]
    model = GeneralizedLinearModel("multinomial", alpha=1 / N, tol=1e-12).fit(X, y)
    peer = LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    assert_allclose(model.predict(X), peer.predict_proba(X), atol=1e-6)
    free = GeneralizedLinearModel("multinomial").fit(X, y)
    codes = np.unique(y, return_inverse=True)[1]
    expected = sm.MNLogit(codes, sm.add_constant(X)).fit(disp=0, tol=1e-12)
    assert_allclose(free.log_likelihood_, expected.llf, rtol=1e-9)
    assert_allclose(free.null_deviance_, -2 * expected.llnull, rtol=1e-9)
    assert_allclose(free.score(X, y), 1 - expected.llf / expected.llnull, rtol=1e-6)
    two = GeneralizedLinearModel("multinomial", alpha=0.01, tol=1e-14).fit(X, y == "a")
    sums = two.coef_[1] - two.coef_[0]
    both = np.r_[sums, two.intercept_[1] - two.intercept_[0]]
    p = 1 / (1 + np.exp(-X @ both[:3] - both[3]))
    assert_allclose(two.predict(X)[:, 1], p, atol=1e-10)
    assert_allclose(X.T @ (p - (y == "a")) / N, -0.01 * sums / 2, atol=1e-6)


def test_estimated_alpha_maximises_the_likelihood():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    y = rng.poisson(np.exp(0.3 + X @ [0.3, 0.2]) * rng.gamma(2.0, 0.5, 2000))
    model = GeneralizedLinearModel(families.NegativeBinomial("estimate")).fit(X, y)
    expected = sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=0, gtol=1e-8, maxiter=300)
    assert_allclose(model.family_.alpha, expected.params[-1], rtol=1e-4)
    assert_allclose(model.log_likelihood_, expected.llf, rtol=1e-8)
    assert_allclose(model.coef_, expected.params[1:-1], atol=1e-4)


# ------------------------------------------------------------------------------------------------ what must not matter


@settings(max_examples=25)
@given(
    family=st.sampled_from(["gaussian", "poisson", "gamma", "binomial", "tweedie"]),
    seed=st.integers(0, 999),
    penalty=st.sampled_from([(0.0, 0.0), (0.1, 0.0), (0.05, 1.0)]),
)
def test_weights_are_repetitions_and_orders_do_not_matter(family, seed, penalty):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))[:60]
    y = response(family, np.exp(0.3 * rng.standard_normal(N)), rng)[:60]
    w = rng.integers(0, 3, 60)
    w[:10] = 1
    keywords = {"alpha": penalty[0], "l1_ratio": penalty[1], "tol": 1e-13}
    weighted = GeneralizedLinearModel(family, **keywords).fit(X, y, w)
    repeated = GeneralizedLinearModel(family, **keywords).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.coef_, repeated.coef_, atol=2e-6)
    assert_allclose(weighted.deviance_, repeated.deviance_, rtol=1e-9)
    rows, columns = rng.permutation(60), rng.permutation(3)
    shuffled = GeneralizedLinearModel(family, **keywords).fit(X[rows][:, columns], y[rows], w[rows])
    assert_allclose(shuffled.coef_, weighted.coef_[columns], atol=2e-6)
    if penalty[0] == 0:
        scaled = GeneralizedLinearModel(family, **keywords).fit(X * [10, 0.1, 1] + 5, y, w)
        assert_allclose(scaled.coef_ * [10, 0.1, 1], weighted.coef_, atol=2e-6)
