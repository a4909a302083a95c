"""What must hold for any data: weights are repetitions, order does not matter, units carry over, shapes are kept."""

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import LinearRegression, LogisticRegression, Ridge

SEEDS = st.integers(0, 2**32 - 1)
MODELS = st.sampled_from([LinearRegression(), Ridge(0.7), LogisticRegression(C=0.8), LogisticRegression(C=0.8)])
some = settings(max_examples=40)


def new(model, **parameters):
    extra = {"tol": 1e-14} if isinstance(model, LogisticRegression) else {}
    return type(model)(**{**model.get_params(), **extra, **parameters})


@st.composite
def problems(draw, min_rows=8):
    """(model, X, y, rng) with a few rows and columns; y with two or three classes, or one or two targets."""
    model, rng = draw(MODELS), np.random.default_rng(draw(SEEDS))
    n, p = draw(st.integers(min_rows, 40)), draw(st.integers(1, 5))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-2, 3, size=p)
    model = new(model, fit_intercept=draw(st.booleans()))
    if isinstance(model, LogisticRegression):
        y = np.array(["b", "a", "c"])[rng.permutation(np.arange(n) % draw(st.integers(2, 3)))]
    else:
        y = rng.normal(size=(n, 2)) if draw(st.booleans()) else rng.normal(size=n)
    return model, X, y, rng


def fit(model, X, y, weight=None):
    with ep.config(on_nonconvergence="ignore"):  # 1e-14 may be below what rounding allows; the optimum is what counts
        return new(model).fit(X, y, weight)


def assert_same(a, b, X, digits=1e-6):
    """The same predictions on X, which are unique also where coefficients are not."""
    if isinstance(a, LogisticRegression):
        assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=digits)
    else:
        values = b.predict(X)
        assert_allclose(a.predict(X), values, rtol=digits, atol=digits * max(1.0, np.abs(values).max()))


@some
@given(problems())
def test_whole_weights_are_repetitions(problem):
    model, X, y, rng = problem
    weight = rng.integers(0, 4, size=len(X))
    weight[:6] = 1  # some of every class
    a, b = fit(model, X, y, weight), fit(model, np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    assert_same(a, b, X[weight > 0])
    assert_allclose(a.coef_, b.coef_, rtol=1e-4, atol=1e-6 * max(1, np.abs(b.coef_).max()))


@some
@given(problems(min_rows=14))
def test_a_row_of_weight_zero_is_not_there(problem):
    """Whatever it holds, also a class that no other row has."""
    model, X, y, _ = problem
    weight = np.ones(len(X))
    weight[9:12] = 0
    X[9] = 1e6
    if isinstance(model, LogisticRegression):
        y = y.astype("U8")
        y[10] = "nowhere"
    else:
        y[10] = 1e9
    kept = weight > 0
    a, b = fit(model, X, y, weight), fit(model, X[kept], y[kept])
    assert_same(a, b, X[kept])
    if isinstance(model, LogisticRegression):
        assert a.classes_.tolist() == b.classes_.tolist()
    else:
        assert a.rank_ == b.rank_


@some
@given(problems())
def test_the_scale_of_weights_matters_to_the_penalty_alone(problem):
    model, X, y, rng = problem
    weight = rng.uniform(0.5, 2, size=len(X))
    changed = {"alpha": 8 * model.alpha} if isinstance(model, Ridge) else {}
    changed = {"C": model.C / 8} if isinstance(model, LogisticRegression) else changed
    assert_same(fit(new(model, **changed), X, y, 8 * weight), fit(model, X, y, weight), X)


@some
@given(problems())
def test_the_order_of_rows_does_not_matter(problem):
    model, X, y, rng = problem
    order = rng.permutation(len(X))
    assert_same(fit(model, X[order], y[order]), fit(model, X, y), X)


@some
@given(problems())
def test_the_order_of_columns_is_that_of_the_coefficients(problem):
    model, X, y, rng = problem
    order = rng.permutation(X.shape[1])
    a, b = fit(model, X[:, order], y), fit(model, X, y)
    assert_allclose(a.coef_, b.coef_[..., order], rtol=1e-5, atol=1e-6 * max(1, np.abs(b.coef_).max()))
    assert_allclose(a.intercept_, b.intercept_, rtol=1e-5, atol=1e-5 * max(1, np.abs(b.intercept_).max()))


@some
@given(problems(), st.floats(-5, 5), st.booleans())
def test_units_carry_over_to_least_squares(problem, exponent, intercept):
    _, X, _, rng = problem
    y = rng.normal(size=len(X))
    model = LinearRegression(fit_intercept=intercept)
    base, factor = fit(model, X, y), 10.0**exponent
    scaled = fit(model, X, factor * y)
    assert_allclose(scaled.coef_, factor * base.coef_, rtol=1e-7, atol=1e-9 * factor * np.abs(base.coef_).max())
    columns = 10.0 ** rng.uniform(-5, 5, size=X.shape[1])
    if len(X) > X.shape[1] + 1:  # the solution of minimum norm does depend on units
        assert_allclose(fit(model, X * columns, y).predict(X * columns), base.predict(X), rtol=1e-6, atol=1e-7)
    if intercept:
        moved = fit(model, X + columns, y + 3)
        assert_allclose(moved.predict(X + columns), base.predict(X) + 3, rtol=1e-5, atol=1e-5)


@some
@given(problems())
def test_swapped_labels_swap_the_signs(problem):
    _, X, _, rng = problem
    y = rng.permutation(np.arange(len(X)) % 2)
    model = LogisticRegression(C=0.3, tol=1e-12)
    a, b = fit(model, X, y), fit(model, X, 1 - y)
    assert_allclose(a.coef_, -b.coef_, rtol=1e-5, atol=1e-7)
    assert_allclose(a.intercept_, -b.intercept_, rtol=1e-5, atol=1e-5)


@some
@given(problems())
def test_shapes(problem):
    model, X, y, _ = problem
    n, p = X.shape
    fitted = fit(model, X, y)
    if isinstance(model, LogisticRegression):
        K = len(np.unique(y))
        rows = 1 if K == 2 else K
        assert fitted.coef_.shape == (rows, p)
        assert fitted.intercept_.shape == (rows,)
        assert fitted.predict_proba(X).shape == fitted.predict_log_proba(X).shape == (n, K)
        assert fitted.decision_function(X).shape == ((n,) if K == 2 else (n, K))
        assert fitted.predict(X).shape == (n,)
        assert set(fitted.predict(X)) <= set(y)
    else:
        assert fitted.coef_.shape == (*y.shape[1:], p)
        assert np.shape(fitted.intercept_) == (y.shape[1:] if model.fit_intercept else ())
        assert fitted.predict(X).shape == y.shape
    assert fitted.n_features_in_ == p
    assert model.fit_intercept or not np.any(fitted.intercept_)


@settings(max_examples=20)
@given(problems(), st.integers(1, 6))
def test_batches_add_up(problem, n_batches):
    _, X, _, rng = problem
    y, weight = rng.normal(size=(len(X), 2)), rng.uniform(0.1, 3, size=len(X))
    for model in (LinearRegression(), Ridge(0.3), LinearRegression(fit_intercept=False)):
        cuts = np.sort(rng.integers(1, len(X), size=n_batches - 1))
        parts = new(model)
        for rows in np.split(np.arange(len(X)), cuts):
            if len(rows):
                parts.partial_fit(X[rows], y[rows], weight[rows])
        assert_same(parts, fit(model, X, y, weight), X, 1e-7)
