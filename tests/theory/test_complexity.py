"""VC dimension and growth by linear programming, coin flips, bias and variance, degrees of freedom."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from epicycle import LinearRegression, Ridge
from epicycle.exceptions import DataError, ParameterError
from epicycle.theory import decompose, optimism, rademacher, vc


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_linear_classifiers_have_dimension_p_plus_one(p):
    found = vc.dimension(p, tries=4)
    assert found.value == p + 1
    assert vc.shatters(found.points)
    # Radon: no set of p + 2 is shattered; here by going through the labellings of one.
    assert vc.dichotomies(np.random.default_rng(p).normal(size=(p + 2, p))) == vc.growth(p + 2, p) < 2 ** (p + 2)


def test_through_the_origin_there_is_one_less():
    assert vc.shatters(np.eye(3), intercept=False)
    assert not vc.shatters(np.random.default_rng(0).normal(size=(4, 3)), intercept=False)
    assert not vc.shatters([[1.0, 1.0], [2.0, 2.0]], intercept=False)


def test_a_class_of_the_user():
    """Intervals of the line label two points as they like, three not."""

    def intervals(points):
        x, n = points[:, 0], len(points)
        for code in range(2**n):
            inside = np.array([bool(code >> i & 1) for i in range(n)])
            if inside.any() and ((x >= x[inside].min()) & (x <= x[inside].max()) & ~inside).any():
                return False
        return True

    assert vc.dimension(1, shattered=intervals).value == 2


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), p=st.integers(1, 3), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_the_number_of_labellings_is_covers(seed, n, p, scale):
    X = scale * np.random.default_rng(seed).normal(size=(n, p))
    assert vc.dichotomies(X) == vc.growth(n, p) <= vc.sauer(n, p + 1)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30), p=st.integers(1, 4))
def test_separable_labels_are_found_so(seed, n, p):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, p)), rng.normal(size=p)
    assert vc.separable(X, X @ w > 0.1)
    inside = np.vstack([X, X.mean(axis=0)])  # the mean of all cannot be alone
    assert not vc.separable(inside, np.arange(n + 1) == n)


def test_bounds_of_complexity():
    assert vc.bound(0.1, 1000, 5) < vc.bound(0.1, 1000, 50) <= 1.0
    assert vc.bound(0.0, 10**6, 11) < 0.03
    assert vc.bound(0.1, 500, 0) == pytest.approx(0.1 + np.sqrt(np.log(20) / 1000))
    assert vc.sauer(10, 10) == vc.sauer(10, 10**9) == vc.growth(10, 10**9) == 2**10  # ended after a billion terms
    assert vc.sauer(100, 3) <= (np.e * 100 / 3) ** 3
    assert vc.margin_dimension(1.0, 0.1, 20) == 21
    assert vc.margin_bound(0.0, 10**6, 1.0, 0.5) == pytest.approx(4e-3 + np.sqrt(np.log(20) / 2e6))


def test_the_vc_bound_covers_the_best_stump():
    """Stumps on one feature have VC dimension 2; labels are coin flips, which a stump explains by chance alone."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        y = rng.choice([-1, 1], 40)
        walk = np.concatenate([[0], np.cumsum(y)])
        best = np.abs(2 * walk - walk[-1]).max()  # of sum y f over thresholds and signs
        inside.append(vc.bound((40 - best) / 80, 40, 2) >= 0.5)
    assert np.mean(inside) >= 0.95


# ------------------------------------------------------------------------------------------------ coin flips


class FiniteClass(ClassifierMixin, BaseEstimator):
    """The best of N fixed random classifiers."""

    def __init__(self, N=8):
        self.N = N

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.votes_ = np.random.default_rng(7).choice([-1, 1], (self.N, 1000))
        self.best_ = int(np.argmax(self.votes_[:, X[:, 0].astype(int)] @ y))
        return self

    def predict(self, X):
        return self.votes_[self.best_, X[:, 0].astype(int)]


@pytest.mark.parametrize("N", [2, 8, 64])
def test_coin_flips_stay_under_the_finite_class_bound(N):
    X = np.arange(200.0)[:, None]
    found = rademacher(FiniteClass(N), X, n_flips=100)
    assert 0 < found.value < np.sqrt(2 * np.log(N) / 200)
    assert found.overfit == 2 * found.value


def test_coin_flips_order_learners_by_what_they_can_learn():
    X = np.random.default_rng(0).normal(size=(120, 3))
    learners = [DummyClassifier(), LogisticRegression(), DecisionTreeClassifier(max_depth=4), KNeighborsClassifier(1)]
    values = [rademacher(model, X, n_flips=10).value for model in learners]
    assert values == sorted(values)
    assert values[-1] == 1.0
    assert abs(values[0]) < 0.2


@pytest.mark.slow
def test_flips_turned_by_labels_have_the_same_expectation():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.choice(["a", "b"], 100)
    plain = rademacher(LogisticRegression(), X, n_flips=60)
    turned = rademacher(LogisticRegression(), X, y, n_flips=60)
    assert abs(plain.value - turned.value) < 4 * np.hypot(plain.standard_error, turned.standard_error)
    again = rademacher(LogisticRegression(), X, n_flips=60, n_jobs=2)
    np.testing.assert_array_equal(again.scores, plain.scores)


# ------------------------------------------------------------------------------------------------ parts of error


def test_parts_of_squared_error_equal_their_formulas():
    """The mean of n targets, shrunk by a half: bias (g/2)^2, variance sigma^2 / 4n."""

    class HalfMean(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            self.value_ = y.mean() / 2
            return self

        def predict(self, X):
            return np.full(len(X), self.value_)

    rng = np.random.default_rng(0)
    n, g, sigma = 25, 3.0, 1.0
    y_test = g + sigma * rng.normal(size=4000)
    found = decompose(
        HalfMean(),
        None,
        None,
        np.zeros((4000, 1)),
        y_test,
        truth=np.full(4000, g),
        n_fits=2000,
        draw=lambda r: (np.zeros((n, 1)), g + sigma * r.normal(size=n)),
    )
    assert found.bias == pytest.approx((g / 2) ** 2, rel=0.02)
    assert found.variance == pytest.approx(sigma**2 / (4 * n), rel=0.1)
    assert found.noise == pytest.approx(sigma**2, rel=0.05)
    assert found.error == pytest.approx(found.bias + found.variance + found.noise, rel=0.02)


def test_parts_of_wrong_labels_add_up():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    Z = rng.normal(size=(200, 2))
    t = (Z[:, 0] * Z[:, 1] > 0).astype(int)
    for model in (LogisticRegression(), KNeighborsClassifier(1), DecisionTreeClassifier(max_depth=3)):
        found = decompose(model, X, y, Z, t, n_fits=15)
        assert found.error == pytest.approx(found.bias + found.net_variance, abs=1e-12)
    line, nearest = (decompose(model, X, y, Z, t) for model in (LogisticRegression(), KNeighborsClassifier(1)))
    assert nearest.bias < line.bias


def test_simple_learners_are_biased_and_flexible_ones_vary():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 6, size=(400, 1))
    g = np.sin(x[:, 0])
    y = g + 0.3 * rng.normal(size=400)
    parts = [
        decompose(model, x[:300], y[:300], x[300:], y[300:], truth=g[300:], n_fits=20)
        for model in (DummyRegressor(), KNeighborsRegressor(25), KNeighborsRegressor(1))
    ]
    assert parts[0].bias > parts[1].bias
    assert parts[0].variance < parts[1].variance < parts[2].variance


def test_least_squares_has_as_many_degrees_of_freedom_as_coefficients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 9))
    found = optimism(LinearRegression(fit_intercept=False), X, X[:, 0], 2.0, n_draws=400)
    assert abs(found.degrees_of_freedom - 9) < 4 * found.standard_error
    assert found.optimism == pytest.approx(2 * 4.0 * found.degrees_of_freedom / 80)
    assert found.test_error - found.training_error == pytest.approx(found.optimism, rel=0.25)


def test_ridge_has_the_trace_of_its_hat_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    alpha = 40.0
    hat = X @ np.linalg.solve(X.T @ X + alpha * np.eye(10), X.T)
    found = optimism(Ridge(alpha=alpha, fit_intercept=False), X, X[:, 1], 1.0, n_draws=400)
    assert abs(found.degrees_of_freedom - np.trace(hat)) < 4 * found.standard_error
    assert found.degrees_of_freedom < 8


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda: vc.shatters([1.0, 2.0]), DataError, "X"),
        (lambda: vc.separable(np.eye(3), [0, 1, 2]), DataError, "y"),
        (lambda: vc.separable(np.eye(3), [0, 1]), DataError, "y"),
        (lambda: vc.dichotomies(np.ones((30, 2))), ParameterError, "30 points"),
        (lambda: vc.bound(2.0, 10, 1), ParameterError, "error"),
        (lambda: vc.margin_bound(0.1, 10, 1.0, 0.0), ParameterError, "margin"),
        (lambda: rademacher(LinearRegression(), np.ones((3, 1))), DataError, "classifier"),
        (lambda: rademacher(LogisticRegression(), np.ones((3, 1)), [0, 1, 2]), DataError, "y"),
        (lambda: optimism(LinearRegression(), np.ones((3, 1)), np.ones(2), 1.0), DataError, "mean"),
        (lambda: optimism(LinearRegression(), np.ones((3, 1)), np.ones(3), 0.0), ParameterError, "sigma"),
    ],
)
def test_bad_arguments_are_named(call, error, name):
    with pytest.raises(error, match=name):
        call()
