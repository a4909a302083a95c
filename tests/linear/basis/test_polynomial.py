"""PolynomialRegression against NumPy, rational arithmetic, and what a polynomial has to satisfy."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.polynomial import Polynomial
from numpy.testing import assert_allclose
from sklearn.preprocessing import PolynomialFeatures

import epicycle as ep
from epicycle.exceptions import DataTypeError, ParameterError
from epicycle.linear.basis._bases import degrees_of, number_of_functions


def curve(n=120, seed=0, low=-1.0, high=2.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(low, high, size=(n, 1))
    return x, np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("degree", [1, 3, 7])
def test_the_same_function_as_numpy(degree):
    x, y = curve()
    model = ep.PolynomialRegression(degree).fit(x, y)
    reference = Polynomial.fit(x[:, 0], y, degree)
    assert_allclose(model.predict(x), reference(x[:, 0]), rtol=1e-10, atol=1e-12)
    assert_allclose(model.monomial_coefficients(), reference.convert().coef, rtol=1e-8, atol=1e-10)
    assert_allclose(model.derivative(x), reference.deriv()(x[:, 0]), rtol=1e-8, atol=1e-9)
    assert_allclose(model.derivative(x, order=2), reference.deriv(2)(x[:, 0]), rtol=1e-7, atol=1e-7)
    assert model.effective_dof_ == pytest.approx(degree + 1)
    assert model.certificate_.holds


def test_degree_20_far_from_zero_keeps_its_digits():
    x = np.linspace(1e3, 1e4, 400)[:, None]
    u = (x[:, 0] - 5500) / 4500
    y = np.polynomial.chebyshev.chebval(u, np.cos(np.arange(21)))  # a polynomial of degree 20, so that it fits exactly
    model = ep.PolynomialRegression(20).fit(x, y)
    assert np.abs(model.predict(x) - y).max() < 1e-12
    assert model.rank_ == 20
    exact = [Fraction(c) for c in model.monomial_coefficients().tolist()]
    at = Fraction(2500)
    value = float(sum(c * at**k for k, c in enumerate(exact)))
    # powers of x cancel 1e70-fold here: even correctly rounded coefficients keep no more than this
    assert np.isfinite(value)
    raw = np.linalg.lstsq(np.vander(x[:, 0], 21), y, rcond=None)[0]
    assert np.abs(np.polyval(raw, x[:, 0]) - y).max() > 1e-4  # what the basis is for


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("p", [1, 2])
def test_leave_one_out_errors_are_those_of_refits_in_the_same_domain(seed, p):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(25, p))
    y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=25)
    alphas = np.array([1e-3, 0.1, 10.0])
    domain = np.stack([X.min(axis=0), X.max(axis=0)])
    model = ep.PolynomialRegression(3, alpha=alphas).fit(X, y)
    same = ep.PolynomialRegression(3, alpha=alphas, domain=domain).fit(X, y)
    assert_allclose(same.loo_errors_, model.loo_errors_, rtol=1e-12)
    assert_allclose(same.predict(X), model.predict(X), rtol=1e-12)
    errors = np.zeros(3)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        for k, alpha in enumerate(alphas):
            one = ep.PolynomialRegression(3, alpha=alpha, domain=domain).fit(X[rest], y[rest])
            errors[k] += (one.predict(X[[i]])[0] - y[i]) ** 2 / len(X)
    assert_allclose(model.loo_errors_, errors, rtol=1e-8)
    assert model.alpha_ == alphas[np.argmin(errors)]


@pytest.mark.parametrize("domain", [(1.0, 1.0), (0.0, np.inf), [[0.0], [1.0]], (2.0, 1.0), "auto", ["a", "b"]])
def test_a_domain_that_is_none_is_named(domain):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises((ParameterError, TypeError), match="domain="):
        ep.PolynomialRegression(domain=domain).fit(X, X[:, 0])


def test_the_domain_makes_no_difference_without_a_penalty():
    x, y = curve()
    wide = ep.PolynomialRegression(5, domain=(-10.0, 10.0)).fit(x, y)
    assert_allclose(wide.predict(x), ep.PolynomialRegression(5).fit(x, y).predict(x), rtol=1e-6, atol=1e-8)
    assert_allclose([wide.centre_[0], wide.half_range_[0]], [0.0, 10.0])


@pytest.mark.parametrize("interactions", [True, False])
def test_several_columns(interactions):
    rng = np.random.default_rng(1)
    X, degree = rng.normal([0, 5, -3], size=(200, 3)), 3
    y = X[:, 0] * X[:, 1] - X[:, 2] ** 3 + rng.normal(size=200)
    model = ep.PolynomialRegression(degree, interactions=interactions).fit(X, y)
    design = PolynomialFeatures(degree).fit(X)
    columns = np.ones(len(design.powers_), bool) if interactions else (design.powers_ > 0).sum(axis=1) <= 1
    A = PolynomialFeatures(degree).fit_transform(X - X.mean(axis=0))[:, columns]
    assert_allclose(model.predict(X), A @ np.linalg.lstsq(A, y, rcond=None)[0], rtol=1e-7, atol=1e-7)
    assert len(model.coef_) == columns.sum() - 1
    powers = np.indices((degree + 1,) * 3).reshape(3, -1).T
    terms = model.monomial_coefficients()
    values = sum(terms[tuple(p)] * np.prod(X**p, axis=1) for p in powers)
    assert_allclose(values, model.predict(X), rtol=1e-8, atol=1e-7)
    step = np.array([0, 1e-5, 0])
    slope = (model.predict(X + step) - model.predict(X - step)) / 2e-5
    assert_allclose(model.derivative(X, column=1), slope, rtol=1e-5, atol=1e-5)


def test_ridge_is_on_the_coefficients_of_the_basis():
    x, y = curve()
    model = ep.PolynomialRegression(6, alpha=0.7).fit(x, y)
    u = (x[:, 0] - model.centre_) / model.half_range_
    T = np.polynomial.chebyshev.chebvander(u, 6)
    D = np.diag([0.0] + [0.7] * 6)
    beta = np.linalg.solve(T.T @ T + D, T.T @ y)
    assert_allclose(np.append(model.intercept_, model.coef_), beta, rtol=1e-9)
    assert model.effective_dof_ == pytest.approx(np.trace(np.linalg.solve(T.T @ T + D, T.T @ T)))
    assert "penalised" in model.summary().note


def test_leave_one_out_is_exact_and_finds_the_planted_degree():
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, size=(80, 1))
    y = 4 * x[:, 0] ** 3 - 2 * x[:, 0] + 0.1 * rng.normal(size=80)
    degrees = [1, 2, 3, 4, 8]
    model = ep.PolynomialRegression(degrees).fit(x, y)
    for degree, error in zip(degrees, model.loo_errors_, strict=True):
        missed = [y[i] - Polynomial.fit(np.delete(x[:, 0], i), np.delete(y, i), degree)(x[i, 0]) for i in range(len(y))]
        assert error == pytest.approx(np.mean(np.square(missed)), rel=1e-8)
    assert model.degree_ == 3
    assert model.degrees_.shape == (3, 1)
    assert ep.PolynomialRegression("loo").fit(x, y).degree_ == 3
    assert "chose" in model.summary().note
    both = ep.PolynomialRegression([2, 3], alpha=[0.0, 1.0, 10.0]).fit(x, y)
    assert both.loo_errors_.shape == (2, 3)
    assert (both.degree_, both.alpha_) == (3, 0.0)


def test_summary_and_coverage_of_its_intervals():
    rng = np.random.default_rng(5)
    x = rng.uniform(2, 3, size=(30, 1))
    truth = ep.PolynomialRegression(2).fit(x, 1 - x[:, 0] + 3 * x[:, 0] ** 2)
    expected = np.append(truth.intercept_, truth.coef_)
    inside = np.zeros(3)
    for _ in range(400):
        y = truth.predict(x) + rng.normal(size=30)
        table = ep.PolynomialRegression(2).fit(x, y).summary(0.9)
        low, high = list(table.columns.values())[-2:]
        inside += (low <= expected) & (expected <= high)
    assert_allclose(inside / 400, 0.9, atol=0.045)
    assert table.rows == ("intercept", "T1(x0)", "T2(x0)")


def test_roughness_is_the_integral_of_the_squared_second_derivative():
    x = np.linspace(0, 2, 50)[:, None]
    model = ep.PolynomialRegression(3).fit(x, x[:, 0] ** 3)
    assert model.summary().facts["roughness"] == pytest.approx(36 * 8 / 3, rel=1e-9)  # the integral of (6x)^2


@settings(max_examples=40)
@given(p=st.integers(1, 5), degree=st.integers(1, 5), interactions=st.booleans())
def test_number_and_order_of_functions(p, degree, interactions):
    degrees = degrees_of(p, degree, interactions=interactions)
    total = degrees.sum(axis=1)
    assert len(degrees) == number_of_functions(p, degree, interactions=interactions)
    assert len(np.unique(degrees, axis=0)) == len(degrees)
    assert np.all(np.diff(total) >= 0)
    assert total[0] == 1
    assert total[-1] == degree


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-6, 1e6), shift=st.floats(-1e4, 1e4), degree=st.integers(1, 5))
def test_units_do_not_matter(seed, scale, shift, degree):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(40, 1)), rng.normal(size=40)
    a = ep.PolynomialRegression(degree).fit(x, y).predict(x)
    moved = (x + shift) * scale
    b = ep.PolynomialRegression(degree).fit(moved, y).predict(moved)
    assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), degree=st.integers(1, 4), alpha=st.sampled_from([0.0, 0.3]))
def test_weights_are_repetitions_and_order_is_free(seed, degree, alpha):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), rng.integers(0, 4, size=30)
    w[:8] += 1
    a = ep.PolynomialRegression(degree, alpha, interactions=False).fit(X, y, w)
    order = rng.permutation(int(w.sum()))
    b = ep.PolynomialRegression(degree, alpha, interactions=False).fit(
        np.repeat(X, w, axis=0)[order], np.repeat(y, w, axis=0)[order]
    )
    assert_allclose(a.predict(X), b.predict(X), rtol=1e-7, atol=1e-8)
    assert a.predict(X).shape == (30, 2)


def test_float32_stays_float32():
    x, y = curve(low=1000, high=1001)
    model = ep.PolynomialRegression(3).fit(x.astype(np.float32), y)
    assert model.predict(x.astype(np.float32)).dtype == np.float32
    assert model.coef_.dtype == np.float32


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"degree": -1}, "degree=-1"),
        ({"degree": [1, -1]}, "degree"),
        ({"degree": 2.5}, "degree"),
        ({"alpha": -1.0}, "alpha=-1"),
        ({"alpha": [1.0, -1.0]}, "alpha"),
        ({"degree": "lo"}, "did you mean 'loo'"),
    ],
)
def test_bad_parameters(parameters, words):
    x, y = curve()
    with pytest.raises(ParameterError, match=words):
        ep.PolynomialRegression(**parameters).fit(x, y)


def test_other_bad_arguments():
    import scipy.sparse as sp

    x, y = curve()
    model = ep.PolynomialRegression(2).fit(x, y)
    for call in (
        lambda: model.derivative(x, column=1),
        lambda: model.derivative(x, order=0),
        lambda: model.summary(target=1),
    ):
        with pytest.raises(ParameterError, match=r"column=1|order=0|target=1"):
            call()
    with pytest.raises(DataTypeError, match="parse"):
        ep.PolynomialRegression().fit(sp.csr_array(x), y)
    with pytest.raises(ParameterError, match="leave-one-out"):
        ep.PolynomialRegression([3, 4]).fit(x[:4], y[:4])


def test_plot():
    x, y = curve()
    axes = ep.PolynomialRegression(3).fit(x, y).plot(x, y)
    assert len(axes.lines) == 2
    X = np.hstack([x, x**2])
    axes = ep.PolynomialRegression(2).fit(X, y).plot(column=1)
    assert len(axes.lines) == 1
    import matplotlib.pyplot as plt

    plt.close("all")


def test_degree_zero_is_the_mean():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(30, 2)), rng.normal(size=30), rng.uniform(1, 2, size=30)
    model = ep.PolynomialRegression(degree=0).fit(X, y, w)
    assert model.coef_.shape == (0,)
    assert model.intercept_ == pytest.approx(np.average(y, weights=w), rel=1e-14)
    assert_allclose(model.predict(X), model.intercept_)
    assert_allclose(model.derivative(X), 0.0)
    assert model.certificate_.holds
    # the error without a row is that of the mean of the others
    chosen = ep.PolynomialRegression(degree=[0, 1, 2]).fit(X, y)
    assert chosen.degree_ == chosen.loo_errors_.argmin()
    others = (y.sum() - y) / 29
    assert chosen.loo_errors_[0] == pytest.approx(np.mean((y - others) ** 2), rel=1e-12)


def test_a_penalty_below_rounding_gives_the_fit_without_one():
    X = np.random.default_rng(0).normal(size=(6, 4))
    X[:, 1] = -3.0  # a constant: its column of the factor is zero
    y = np.array([2.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    model = ep.PolynomialRegression(2, alpha=1e-300).fit(X, y)
    assert_allclose(model.predict(X), ep.PolynomialRegression(2).fit(X, y).predict(X), atol=1e-10)
