"""The optimum of quantile regression is that of the linear programme, and its certificate is true."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from linear_programme import every_vertex, highs, objective
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import QuantileRegressor as SklearnQuantileRegressor

from epicycle import QuantileRegressor, TimeLimit
from epicycle.exceptions import ConvergenceWarning

SOLVERS = ["auto", "interior-point", "simplex"]


def random_problem(seed, kind):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 50)), int(rng.integers(1, 9))
    X = rng.normal(size=(n, p))
    if kind == "ties":
        X = np.round(X)
    elif kind == "constant":
        X[:, 0] = 3.0
    elif kind == "dependent" and p > 1:
        X[:, -1] = X[:, 0] * 2 - 1
    elif kind == "scales":
        X *= 10.0 ** rng.integers(-8, 8, size=p)
    elif kind == "sparse":
        X[rng.random(X.shape) < 0.7] = 0
    elif kind == "wide":
        X = rng.normal(size=(n, n + 3))
    y = X @ rng.normal(size=X.shape[1]) / (1e-9 + np.abs(X).max()) + rng.choice([0, 0.1, 1, 100]) * rng.normal(size=n)
    if kind == "ties":
        y = np.round(y)
    if kind == "outlier":
        y[rng.integers(n)] = 1e9
    s = np.ones(n) if rng.random() < 0.5 else rng.integers(0, 3, n).astype(float)
    return X, y, np.ones(n) if s.sum() == 0 else s


KINDS = ["plain", "ties", "constant", "dependent", "scales", "sparse", "wide", "outlier"]


@settings(max_examples=120)
@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.sampled_from([0.5, 0.1, 0.9, 0.3]),
    st.sampled_from([0.0, 0.0, 0.01, 1.0]),
    st.booleans(),
    st.sampled_from(SOLVERS),
    st.sampled_from([np.float64, np.float32]),
)
def test_never_above_the_linear_programme(seed, kind, tau, alpha, intercept, solver, dtype):
    X, y, s = random_problem(seed, kind)
    X = X.astype(dtype)
    data = sp.csr_array(X) if kind == "sparse" else X
    # Rounded to float32, a dependent column is independent by 1e-7: coefficients of 1e7 cost as many digits.
    tol = 1e-7 if kind == "dependent" and dtype == np.float32 else 1e-10
    model = QuantileRegressor(quantile=tau, alpha=alpha, fit_intercept=intercept, solver=solver, tol=tol)
    model.fit(data, y, s)
    assert model.certificate_.holds
    reference, _, _ = highs(X, y, s, tau, alpha, intercept)
    spread = np.abs(y - np.median(y)).mean()
    assert model.objective_ <= reference + tol * max(reference, spread)
    if dtype == np.float64:  # float32 coefficients are rounded, the objective is not
        value = objective(X, y, s, tau, alpha, model.coef_, model.intercept_)
        assert value == pytest.approx(model.objective_, rel=1e-9, abs=1e-9 * max(spread, 1e-300))


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.integers(1, 2),
    st.sampled_from([0.25, 0.5, 0.875]),
    st.booleans(),
    st.sampled_from(SOLVERS),
)
def test_exactly_the_best_of_all_vertices(seed, p, tau, weighted, solver):
    """In exact arithmetic: the minimum lies at a hyperplane through p + 1 rows, so trying all of them finds it."""
    rng = np.random.default_rng(seed)
    n = 8
    X = rng.integers(-4, 5, size=(n, p)).astype(float)
    y = rng.integers(-9, 10, size=n).astype(float)
    s = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    best = every_vertex(X, y, s, tau)
    if best is None:  # all rows on a line: fewer parameters than the enumeration takes
        return
    model = QuantileRegressor(quantile=tau, alpha=0, solver=solver).fit(X, y, s)
    assert model.objective_ * s.sum() == pytest.approx(float(best), rel=1e-13, abs=1e-12)
    assert model.certificate_.holds


def test_least_absolute_deviations_is_the_linear_programming_optimum(data):
    X, y = data
    model = QuantileRegressor(quantile=0.5, alpha=0).fit(X, y)
    _, w, b = highs(X, y, np.ones(len(y)), 0.5, 0.0, True)
    assert_allclose(model.coef_, w, rtol=1e-9)
    assert model.intercept_ == pytest.approx(b, rel=1e-9)
    assert np.count_nonzero(np.abs(y - model.predict(X)) < 1e-10) == X.shape[1] + 1


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) + 2
    return X, X @ rng.normal(size=5) + rng.standard_t(2, size=300)


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_equals_scikit_learn(data, alpha):
    X, y = data
    s = np.random.default_rng(1).uniform(0, 2, size=len(y))
    ours = QuantileRegressor(quantile=0.3, alpha=alpha).fit(X, y, s)
    theirs = SklearnQuantileRegressor(quantile=0.3, alpha=alpha).fit(X, y, s)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-7)


def many_rows(n=9000, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * [1, 10, 0.1, 1] + [0, 1e6, 5, 0]
    y = (X - [0, 1e6, 5, 0]) @ [1.0, -0.2, 3.0, 0.0] + rng.standard_t(2, size=n) * (1 + np.abs(X[:, 0]))
    return X, y


@pytest.mark.parametrize("tau", [0.5, 0.02, 0.95])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_settled_signs_change_nothing(tau, alpha):
    X, y = many_rows()
    whole = QuantileRegressor(quantile=tau, alpha=alpha, solver="interior-point").fit(X, y)
    parts = QuantileRegressor(quantile=tau, alpha=alpha).fit(X, y)
    assert parts.history_.rows[-1] < len(y) / 2  # it did work on part of the rows
    assert_allclose(parts.coef_, whole.coef_, rtol=1e-7, atol=1e-9)
    assert parts.objective_ == pytest.approx(whole.objective_, rel=1e-13)
    assert parts.certificate_.holds


def test_sorted_rows_and_rare_weights_do_not_mislead_the_draw():
    X, y = many_rows()
    order = np.argsort(y)
    s = np.where(np.arange(len(y)) % 50 == 0, 100.0, 0.01)
    whole = QuantileRegressor(alpha=0, solver="interior-point").fit(X, y, s)
    parts = QuantileRegressor(alpha=0).fit(X[order], y[order], s[order])
    assert parts.objective_ == pytest.approx(whole.objective_, rel=1e-12)
    assert parts.certificate_.holds


def test_weights_are_repetitions_and_rows_have_no_order():
    """Also where the optimum is not unique: integers have ties."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    y = rng.integers(0, 4, size=40).astype(float)
    s = rng.integers(0, 4, size=40)
    for tau in (0.5, 0.25):
        weighted = QuantileRegressor(quantile=tau, alpha=0).fit(X, y, s)
        repeated = QuantileRegressor(quantile=tau, alpha=0).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
        order = rng.permutation(40)
        permuted = QuantileRegressor(quantile=tau, alpha=0).fit(X[order], y[order], s[order])
        for other in (repeated, permuted):
            assert_allclose(other.coef_, weighted.coef_, atol=1e-12)
            assert other.intercept_ == pytest.approx(weighted.intercept_, abs=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(-6, 6), st.floats(-8, 8), st.floats(-1e6, 1e6))
def test_equivariance(seed, log_x, log_y, shift):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = rng.normal(size=60)
    base = QuantileRegressor(quantile=0.4, alpha=0).fit(X, y)
    cx, cy = 10.0**log_x, 10.0**log_y
    other = QuantileRegressor(quantile=0.4, alpha=0).fit(X * cx + shift, y * cy)
    # x + shift is itself rounded
    lost = 1e-13 * abs(shift) / cx
    assert_allclose(other.coef_ * cx / cy, base.coef_, atol=1e-9 + 100 * lost)
    flipped = QuantileRegressor(quantile=0.6, alpha=0).fit(X, -y)
    assert_allclose(flipped.coef_, -base.coef_, atol=1e-9)
    columns = QuantileRegressor(quantile=0.4, alpha=0).fit(X[:, ::-1], y)
    assert_allclose(columns.coef_[::-1], base.coef_, atol=1e-9)


def test_a_penalty_above_the_largest_leaves_the_quantile(data):
    X, y = data
    psi = 0.3 - (y < np.quantile(y, 0.3, method="inverted_cdf"))
    largest = np.abs((X - X.mean(axis=0)).T @ psi).max() / len(y) + np.abs(X).max() / len(y)
    model = QuantileRegressor(quantile=0.3, alpha=2 * largest).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(np.quantile(y, 0.3, method="inverted_cdf"))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_that_was_cut_short_proves_what_it_can(solver):
    X, y = many_rows(2500)
    model = QuantileRegressor(alpha=0, solver=solver).set_callbacks(TimeLimit(1e-9))
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(X, y)
    best = QuantileRegressor(alpha=0).fit(X, y).objective_
    constant = np.abs(y - np.median(y)).mean() / 2
    assert not model.converged_
    assert model.certificate_.value >= (model.objective_ - best) / constant * 0.99 - 1e-12
    assert model.objective_ > best or solver == "simplex"


def test_the_same_bits_for_any_number_of_threads():
    X, y = many_rows(60_000)
    fits = [QuantileRegressor(quantile=0.7, alpha=0, n_jobs=k).fit(X, y) for k in (1, 3)]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].certificate_ == fits[1].certificate_
