"""Families and links: mean and variance are a' and a'', response and link are inverse, users' own families."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import erfc, erfcx

import epicycle as ep
from epicycle import Family, GeneralizedLinearModel, io
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.linear import families, links
from epicycle.linear.glm._response import response_of

STANDARD = [
    families.Gaussian(),
    families.Binomial(),
    families.Poisson(),
    families.Gamma(),
    families.Exponential(),
    families.InverseGaussian(),
    families.Tweedie(1.5),
    families.Tweedie(1.05),
    families.Tweedie(2.5),
    families.Tweedie(-1.0),
    families.NegativeBinomial(0.3),
    families.NegativeBinomial(2.0),
]
LINKS = [*(cls() for cls in links.LINKS.values()), links.Power(0.3)]


@pytest.mark.parametrize("family", STANDARD, ids=repr)
def test_mean_and_variance_are_derivatives_of_the_log_partition(family):
    family.check()
    mu = np.array([0.1, 0.3, 0.7, 0.9])
    assert_allclose(family.mean(family.natural(mu)), mu, rtol=1e-12)
    assert_allclose(family.variance(mu), family.mean_variance(family.natural(mu)), rtol=1e-10)
    h = 1e-6
    slope = (family.variance(mu + h) - family.variance(mu - h)) / (2 * h)
    assert_allclose(family.variance_slope(mu), slope, rtol=1e-6, atol=1e-8)
    if family.name != "tweedie" or family.power > 0:
        derived = Family.unit_deviance(family, np.array([0.2, 0.3, 0.5, 0.8]), mu)
        assert_allclose(family.unit_deviance(np.array([0.2, 0.3, 0.5, 0.8]), mu), derived, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_link_and_response_are_inverse(link):
    mu = np.array([0.05, 0.4, 0.6, 0.99])
    eta = link.link(mu)
    assert_allclose(link.inverse(eta), mu, rtol=1e-12)
    h = 1e-6
    first, second = link.derivatives(eta)
    assert_allclose(first, (link.inverse(eta + h) - link.inverse(eta - h)) / (2 * h), rtol=1e-6)
    assert_allclose(
        second, (link.derivatives(eta + h)[0] - link.derivatives(eta - h)[0]) / (2 * h), rtol=1e-5, atol=1e-7
    )


@settings(max_examples=60)
@given(
    family=st.sampled_from(STANDARD[:9]),
    link=st.sampled_from(["log", "identity", "logit", "probit", "cloglog", "sqrt", "inverse", "inverse_squared"]),
    seed=st.integers(0, 99),
)
def test_rows_are_derivatives_of_half_the_deviance(family, link, seed):
    response, rng = response_of(family, link), np.random.default_rng(seed)
    mu, y = rng.uniform(0.2, 0.8, 20), rng.uniform(0.1, 0.9, 20)
    eta, h = response.link.link(mu), 1e-6
    terms, up, down = (response.terms(y, eta + d) for d in (0.0, h, -h))
    assert_allclose(terms.loss, 0.5 * family.unit_deviance(y, mu), rtol=1e-9, atol=1e-13)
    assert_allclose(terms.r, (up.loss - down.loss) / (2 * h), rtol=1e-5, atol=1e-6)
    assert_allclose(terms.h, (up.r - down.r) / (2 * h), rtol=1e-4, atol=1e-5)
    if response.convex:
        assert (terms.h >= 0).all()
    if response.curvature_floor is not None:
        rho = rng.uniform(0.0, 0.1, 20) * np.abs(eta)
        floor = response.curvature_floor(y, eta, rho)
        for share in np.linspace(-1, 1, 9):
            assert (response.terms(y, eta + share * rho).h >= floor * terms.h * (1 - 1e-9)).all()


@pytest.mark.parametrize("eta", [-40.0, -10.0, -1.0, 0.0, 1.0, 6.0])
@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_binary_losses_keep_their_digits_in_the_tails(eta, link):
    response = response_of(families.Binomial(), link)
    if link == "probit":  # by the scaled complementary error function
        hazard = np.sqrt(2 / np.pi) / erfcx(-eta / np.sqrt(2))
        value = -np.log1p(-erfc(eta / np.sqrt(2)) / 2) if eta > 0 else eta**2 / 2 - np.log(erfcx(-eta / np.sqrt(2)) / 2)
        exact = [value, -hazard, hazard * (hazard + eta)]
    else:
        m = np.exp(np.longdouble(eta))
        second = m * (np.exp(m) * (m - 1) + 1) / np.expm1(m) ** 2
        second = m / 2 - m**2 / 6 if m < 1e-4 else second
        exact = [
            float(-np.log1p(-np.exp(-m)) if m > 1 else -np.log(-np.expm1(-m))),
            float(-m / np.expm1(m)),
            float(second),
        ]
    terms = response.terms(np.array([1.0]), np.array([eta]))
    assert_allclose([terms.loss[0], terms.r[0], terms.h[0]], exact, rtol=1e-9, atol=1e-280)


# ------------------------------------------------------------------------------------------------ likelihoods


@pytest.mark.parametrize(
    ("family", "phi", "law"),
    [
        (families.Gaussian(), 0.5, lambda mu, phi: stats.norm(mu, np.sqrt(phi))),
        (families.Gamma(), 0.5, lambda mu, phi: stats.gamma(1 / phi, scale=mu * phi)),
        (families.InverseGaussian(), 0.5, lambda mu, phi: stats.invgauss(mu * phi, scale=1 / phi)),
        (families.Exponential(), 1.0, lambda mu, phi: stats.expon(scale=mu)),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_likelihood_is_that_of_the_law(family, phi, law):
    mu, y = np.array([0.5, 1.0, 2.0]), np.array([0.7, 0.4, 3.0])
    saturated = family.log_likelihood_saturated(y, np.ones(3), phi, None)
    assert_allclose(saturated - family.unit_deviance(y, mu) / (2 * phi), law(mu, phi).logpdf(y), rtol=1e-10)
    assert_allclose(family.distribution(y, mu, np.full(3, phi), np.ones(3))[1], law(mu, phi).cdf(y), rtol=1e-10)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (families.Poisson(), lambda mu: stats.poisson(mu)),
        (families.NegativeBinomial(0.4), lambda mu: stats.nbinom(1 / 0.4, 1 / (1 + 0.4 * mu))),
    ],
    ids=["poisson", "negative binomial"],
)
def test_likelihood_of_counts(family, law):
    mu, y = np.array([0.5, 1.0, 6.0]), np.array([0.0, 3.0, 4.0])
    saturated = family.log_likelihood_saturated(y, np.ones(3), 1.0, None)
    assert_allclose(saturated - family.unit_deviance(y, mu) / 2, law(mu).logpmf(y), rtol=1e-10)
    below, above = family.distribution(y, mu, np.ones(3), np.ones(3))
    assert_allclose(above - below, law(mu).pmf(y), rtol=1e-9)


def test_tweedie_is_a_sum_of_gammas():
    family, phi, mu = families.Tweedie(1.4), 0.6, 1.7
    rate, scale, shape = mu**0.6 / (phi * 0.6), phi * 0.4 * mu**0.4, 0.6 / 0.4
    y = np.array([0.0, 0.2, 1.0, 5.0])
    k = np.arange(1, 200)
    density = [np.sum(stats.poisson.pmf(k, rate) * stats.gamma.pdf(v, k * shape, scale=scale)) for v in y[1:]]
    expected = np.append(-rate, np.log(density))
    saturated = family.log_likelihood_saturated(y, np.ones(4), phi, None)
    assert_allclose(saturated - family.unit_deviance(y, np.full(4, mu)) / (2 * phi), expected, rtol=1e-10)
    below, above = family.distribution(y, np.full(4, mu), np.full(4, phi), np.ones(4))
    assert (below[0], above[0]) == pytest.approx((0.0, np.exp(-rate)))
    many = np.random.default_rng(0).gamma(1.0, 2.0, 6000)  # enough for the table that is interpolated
    few = np.concatenate(
        [family.log_likelihood_saturated(part, np.ones(3000), phi, None) for part in (many[:3000], many[3000:])]
    )
    assert_allclose(family.log_likelihood_saturated(many, np.ones(6000), phi, None), few, rtol=1e-8, atol=1e-8)


# ------------------------------------------------------------------------------------------------ users' own


class Rayleigh(Family):
    """p(y) = y exp(theta y^2 + log(-2 theta))."""

    name, support, natural_range = "rayleigh", (0.0, np.inf), (-np.inf, 0.0)

    def sufficient(self, y):
        return y**2

    def log_base(self, y):
        return np.log(y)

    def log_partition(self, theta):
        return -np.log(-2 * theta)


class OwnPoisson(Family):
    name, support = "own", (0.0, np.inf)

    def log_partition(self, theta):
        return np.exp(theta)


class Wrong(OwnPoisson):
    def mean(self, theta):
        return 2 * np.exp(theta)


class Concave(OwnPoisson):
    def log_partition(self, theta):
        return -np.exp(theta)


class WrongVariance(OwnPoisson):
    def mean_variance(self, theta):
        return 5 * np.exp(theta)


@pytest.mark.parametrize(
    ("family", "what"), [(Wrong(), "mean"), (WrongVariance(), "mean_variance"), (Concave(), "a''")]
)
def test_a_family_with_wrong_derivatives_is_refused_by_the_fit(family, what):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2))
    with pytest.raises(ParameterError, match=f"own: {re.escape(what)}"):
        GeneralizedLinearModel(family).fit(X, rng.poisson(1.0, 50).astype(float))


def test_a_family_in_ten_lines_is_the_one_it_describes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = rng.poisson(np.exp(0.3 + X @ [0.3, -0.2, 0.1])).astype(float)
    own, known = (GeneralizedLinearModel(f).fit(X, y) for f in (OwnPoisson(), "poisson"))
    assert_allclose(own.coef_, known.coef_, rtol=1e-6)
    assert_allclose(own.deviance_, known.deviance_, rtol=1e-7)
    assert_allclose(own.null_deviance_, known.null_deviance_, rtol=1e-7)
    assert_allclose(own.summary()["std err"], known.summary()["std err"], rtol=1e-5)
    assert own.certificate_.kind == "stationarity"


def test_sufficient_statistics_that_are_not_the_response():
    Rayleigh().check()
    rng = np.random.default_rng(1)
    x = rng.random((4000, 1))
    sigma2 = 1 / (2 * (1 + x[:, 0]))
    model = GeneralizedLinearModel(Rayleigh()).fit(x, rng.rayleigh(np.sqrt(sigma2)))
    assert_allclose([float(model.intercept_), model.coef_[0]], [-1, -1], atol=0.25)
    assert_allclose(model.predict(x[:5]), (2 * sigma2)[:5], rtol=0.1)  # the mean of y^2
    with pytest.raises(DataError, match="rayleigh"):
        model.fit(x, -np.ones(4000))


def test_a_family_is_checked():
    with pytest.raises(ParameterError, match=r"mean\(.*a' of log_partition"):
        Wrong().check()
    with pytest.raises(ParameterError, match="convex"):
        Concave().check()
    with pytest.raises(ParameterError, match="canonical"):
        GeneralizedLinearModel(OwnPoisson(), link="sqrt").fit(np.ones((5, 1)), np.ones(5))


def test_a_family_is_saved_once_it_is_registered(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((50, 2)), rng.rayleigh(1.0, 50)
    model = GeneralizedLinearModel(Rayleigh()).fit(X, y)
    with pytest.raises(ParameterTypeError, match="Rayleigh"):
        model.save(tmp_path / "m.epi")
    io.register(Rayleigh, "tests.Rayleigh")
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert loaded.family == Rayleigh()
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("family", [families.Tweedie(1.7), families.NegativeBinomial(0.5), "gamma"], ids=str)
@pytest.mark.parametrize("link", ["auto", links.Power(0.5)], ids=str)
def test_families_and_links_in_files(tmp_path, family, link):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), rng.gamma(2.0, 1.0, 60)
    model = GeneralizedLinearModel(family, link=link, alpha=0.01).fit(X, y)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert (loaded.family, loaded.link) == (model.family, model.link)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("bad", [{"power": 0.5}, {"power": np.nan}])
def test_impossible_powers(bad):
    with pytest.raises(ParameterError, match="power"):
        families.Tweedie(**bad)
    with pytest.raises(ParameterError, match="alpha"):
        families.NegativeBinomial(-1.0)
