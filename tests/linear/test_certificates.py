"""A certificate that holds is true: against optima in extended precision, over random and awkward problems."""

from fractions import Fraction

import extended_precision as exact
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import epicycle as ep
from epicycle import (
    GeneralizedLinearModel,
    HuberRegressor,
    JamesStein,
    LinearRegression,
    LogisticRegression,
    Ridge,
)
from epicycle.data import as_data
from epicycle.exceptions import SeparationWarning
from epicycle.linear.logistic._objective import LogisticObjective

pytestmark = pytest.mark.filterwarnings("ignore::epicycle.exceptions.CollinearityWarning")  # it is on purpose
LD = np.longdouble
EPS = float(np.finfo(float).eps)
SCALES = st.sampled_from([2.0**-10, 0.25, 1.0, 3.0, 2.0**10])


@st.composite
def tables(draw, max_rows=24, max_columns=5):
    """(X, weights or None): small whole numbers times a scale for each column; some constant, copied or shifted."""
    n, p = draw(st.integers(2, max_rows)), draw(st.integers(1, max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-8, 9, size=(n, p)).astype(float) * [draw(SCALES) for _ in range(p)]
    trouble = draw(st.sampled_from(["none", "none", "constant", "twice", "zero", "offset"]))
    if trouble == "constant":
        X[:, 0] = 5.0
    elif trouble == "twice":
        X[:, -1] = 2 * X[:, 0]
    elif trouble == "zero":
        X[:, -1] = 0.0
    elif trouble == "offset":
        X = X + 2.0**10
    weight = rng.integers(0, 4, size=n) * 0.75 if draw(st.booleans()) else None
    return X, weight


def stored(X, coef, intercept):
    """How much a prediction moves, row by row, because coefficients are rounded to the type they are kept in."""
    eps = EPS if coef.dtype == np.float64 else float(np.finfo(np.float32).eps)
    return 8 * eps * (np.abs(X) @ np.abs(coef).T.astype(float) + np.abs(intercept).astype(float))


# ------------------------------------------------------------------------------------------------ logistic regression


@settings(max_examples=120)
@given(
    tables(),
    st.integers(2, 4),
    st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, np.inf]),
    st.booleans(),
    st.sampled_from(["auto", "auto", "newton", "lbfgs", "bfgs", "cg", "gd", "sgd", "adam"]),
    st.sampled_from([np.float64, np.float64, np.float32]),
    st.integers(0, 2**32 - 1),
)
def test_logistic(table, n_classes, C, intercept, solver, dtype, seed):
    X, weight = table
    X = X.astype(dtype)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, size=len(X))
    if seed % 2:  # partly explained by the first column
        y = np.where(X[:, 0] > np.median(X[:, 0]), 0, y)
    used = np.ones(len(X), bool) if weight is None else weight > 0
    classes, codes = np.unique(y[used], return_inverse=True)
    if len(classes) < 2:
        return
    model = LogisticRegression(C=C, fit_intercept=intercept, solver=solver, max_iter=200, random_state=0)
    X64, w = X[used].astype(float), None if weight is None else weight[used]
    penalty = 0.0 if np.isinf(C) else 1 / C
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X, y, weight)
    if model.certificate_.kind == "separation":
        assert np.isinf(C)
        minimum, _ = exact.logistic(X64, codes, len(classes), w, 1e-9, intercept)
        assert minimum < 0.9 * (len(X64) if w is None else w.sum()) * np.log(len(classes))
        return
    assert np.array_equal(model.classes_, classes)
    assert model.converged_ == model.certificate_.holds
    if not model.certificate_.holds:
        return
    minimum, reached = exact.logistic(X64, codes, len(classes), w, penalty, intercept)
    assert reached
    value = exact.logistic_objective(X64, codes, w, penalty, model.coef_, model.intercept_)
    # z may be off by `stored`; with curvature at most 1/2 and F' = 0 nearby this costs a quadratic term.
    moved = stored(X64, model.coef_, model.intercept_)
    rounding = float((moved**2).sum()) + 1e-15 * len(X64) + 1e-14 * float(value)
    assert float(value - minimum) <= model.certificate_.value * float(value) * (1 + 1e-6) + rounding


def test_a_holding_certificate_is_not_the_rule_by_accident():
    """On plain problems it must hold: any penalty, with and without intercept, 2 to 4 classes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4))
    for n_classes in (2, 3, 4):
        y = rng.integers(0, n_classes, size=80)
        for C in (1e-4, 1.0, 1e6, np.inf):
            for intercept in (True, False):
                model = LogisticRegression(C=C, fit_intercept=intercept).fit(X, y)
                assert model.certificate_.holds
                assert model.n_iter_ <= 12


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("trouble", ["constant", "twice", "dummies"])
def test_dependent_features_without_a_penalty(n_classes, trouble):
    """The likelihood has a maximum; only its place is not unique. The fit says that it reached it."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = rng.integers(0, n_classes, size=200)
    extra = {"constant": np.full((200, 1), 7.0), "twice": 3 * X[:, :1], "dummies": np.eye(3)[rng.integers(0, 3, 200)]}
    model = LogisticRegression(C=np.inf).fit(np.hstack([X, extra[trouble]]), y)
    codes = np.unique(y, return_inverse=True)[1]
    wide = np.hstack([X, extra[trouble]])
    minimum, reached = exact.logistic(wide, codes, n_classes, None, 0.0, True)
    assert reached
    value = exact.logistic_objective(wide, codes, None, 0.0, model.coef_, model.intercept_)
    assert float((value - minimum) / minimum) <= model.certificate_.value + 1e-14
    assert model.certificate_.holds
    assert "standard errors" in model.summary().note


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "bfgs", "cg", "gd"])
def test_separable_classes_never_get_a_certificate(solver):
    """An unpenalised objective falls to zero for ever: no point may be called optimal, however flat it is there."""
    X = np.linspace(-1, 1, 20)[:, None] * [1.0, 0.5]
    for y in ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.3, 0.3])):
        with pytest.warns(SeparationWarning):
            model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
        assert not model.certificate_.holds


def test_nearly_separable_classes():
    """The minimum is as small as 1e-6 and the curvature all but gone; the bound still holds."""
    X = np.arange(-6.0, 6.0)[:, None] * [1.0, 3.0]
    y = (X[:, 0] > -0.5).astype(int)
    for C in (1e2, 1e4, 1e6, 1e8):
        model = LogisticRegression(C=C).fit(X, y)
        minimum, reached = exact.logistic(X, y, 2, None, 1 / C, True)
        value = exact.logistic_objective(X, y, None, 1 / C, model.coef_, model.intercept_)
        assert reached
        assert model.certificate_.holds
        assert float((value - minimum) / value) <= model.certificate_.value * (1 + 1e-6) + 1e-12


# ------------------------------------------------------------------------------------------------ least squares


def least_squares_check(model, X, y, weight, alpha):
    """Assert the claim of a certificate that holds; `y` has shape (n, k)."""
    if not model.certificate_.holds:
        return
    w = np.ones(len(X)) if weight is None else weight
    excess, total, rounding = LD(0), LD(0), 0.0
    coef, b = np.atleast_2d(model.coef_), np.broadcast_to(model.intercept_, y.shape[1])
    X64 = X.astype(float)
    for t in range(y.shape[1]):
        _, _, minimum = exact.least_squares(X64, y[:, t], weight, alpha, model.fit_intercept)
        value = exact.squares_objective(X64, y[:, t], w, alpha, coef[t], b[t])
        excess += value - minimum
        centre = (w @ y[:, t]) / w.sum() if model.fit_intercept else 0.0
        total += LD(w @ (y[:, t] - centre) ** 2) / 2
        moved = 4 * stored(X64, coef[t], b[t]) + 8 * EPS * np.abs(y[:, t])
        if alpha:  # the penalty feels the rounding of w itself
            rounding += alpha * float(((8 * np.finfo(coef.dtype).eps * coef[t].astype(float)) ** 2).sum())
        fine = moved / 1024  # of the reference
        rounding += float(w @ moved**2) + float(np.sqrt(2 * value * (w @ fine**2)))
    rounding += 1e-15 * float(total)
    assert float(excess) <= model.certificate_.value * float(total) * (1 + 1e-6) + rounding


@settings(max_examples=150)
@given(
    tables(),
    st.sampled_from([0.0, 0.0, 1e-4, 1.0, 1e4]),
    st.booleans(),
    st.sampled_from(["auto", "auto", "cholesky", "qr", "newton", "cg", "bfgs", "lbfgs", "gd", "adam"]),
    st.sampled_from([np.float64, np.float64, np.float32]),
    st.integers(1, 2),
    st.integers(0, 2**32 - 1),
)
def test_least_squares(table, alpha, intercept, solver, dtype, n_targets, seed):
    X, weight = table
    X = X.astype(dtype)
    if weight is not None and not weight.any():
        return
    y = np.random.default_rng(seed).normal(size=(len(X), n_targets)) * 10.0 ** (seed % 7 - 3)
    kind = Ridge(alpha, fit_intercept=intercept) if alpha else LinearRegression(fit_intercept=intercept)
    with ep.config(on_nonconvergence="ignore"):
        model = kind.set_params(solver=solver, max_iter=200, random_state=0).fit(X, y, weight)
    assert model.converged_ == model.certificate_.holds
    if solver in ("auto", "qr"):
        assert model.certificate_.holds
    least_squares_check(model, X, y, weight, alpha)


@settings(max_examples=60)
@given(
    st.integers(3, 40),
    st.sampled_from(["auto", "cholesky", "qr", "newton", "cg", "bfgs", "partial_fit"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@example(30, "cholesky", True, 1)
@example(30, "cg", True, 1)
@example(30, "newton", False, 1)
@example(30, "partial_fit", True, 1)
def test_least_squares_of_nearly_dependent_columns(closeness, solver, intercept, seed):
    """Columns that differ by 2^-3 .. 2^-40 of their length: second moments cannot tell them apart, and must say so."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(20, 3)).astype(float)
    X[:, 1] = X[:, 0] + X[:, 2] * 2.0**-closeness
    y = rng.normal(size=(20, 1)) + X[:, 1:2]
    model = LinearRegression(fit_intercept=intercept, max_iter=300)
    with ep.config(on_nonconvergence="ignore"):
        if solver == "partial_fit":
            model.partial_fit(X[:12], y[:12]).partial_fit(X[12:], y[12:])
        else:
            model.set_params(solver=solver).fit(X, y)
    least_squares_check(model, X, y, None, 0.0)
    if solver in ("auto", "qr"):
        assert model.certificate_.holds


def test_least_squares_certificates_hold_where_they_should():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    dependent = np.hstack([X, X[:, :1] + X[:, 1:2], np.ones((60, 1))])
    for table in (X, dependent, X[:4], X + 1e8, X * 1e-150, X * 1e150):
        rows = y[: len(table)]
        for solver in ("auto", "cholesky", "qr", "newton"):
            assert LinearRegression(solver=solver).fit(table, rows).certificate_.holds
            assert Ridge(solver=solver).fit(table, rows).certificate_.holds
        assert LinearRegression().partial_fit(table, rows).certificate_.holds
    for constant in (0.0, 0.1, 1e8 / 3):
        model = LinearRegression().fit(X, np.full(60, constant))
        assert model.certificate_.holds
        np.testing.assert_allclose(model.predict(X), constant, rtol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("length", [1.0, 1e2, 1e3, 5e3, 1e4, 1e5])
def test_no_point_of_a_separable_problem_is_optimal(n_classes, length):
    """However far out, the objective can be brought below any fraction of what it is, until it is zero itself."""
    X = np.linspace(-1, 1, 24)[:, None]
    codes = np.digitize(X[:, 0], [0.0] if n_classes == 2 else [-0.4, 0.4])
    data = as_data(X, codes.astype(float) if n_classes == 2 else codes, target="numeric")
    if n_classes > 2:
        data = data.encode_target(lambda y: y.astype(np.intp))
    objective = LogisticObjective(data, n_classes, 0.0, intercept=True, shift=np.zeros(1))
    along = np.array([1.0, 0.0]) if n_classes == 2 else np.array([-3.0, -0.4, 0.0, 0.8, 3.0, -0.4])
    value, _ = objective.value_and_gradient(length * along)
    assert not objective.certify(length * along, 1e-8).holds or value == 0.0
    assert objective.value(2 * length * along) < value or value == 0.0


def exact_least_squares(X, y):
    """(coefficients with the intercept last, rows with a one, y) in rational numbers."""
    rows = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in X]
    y = [Fraction(float(v)) for v in y]
    d = len(rows[0])
    M = [
        [sum(r[i] * r[j] for r in rows) for j in range(d)] + [sum(r[i] * t for r, t in zip(rows, y, strict=True))]
        for i in range(d)
    ]
    for i in range(d):
        for k in set(range(d)) - {i}:
            factor = M[k][i] / M[i][i]
            M[k] = [a - factor * b for a, b in zip(M[k], M[i], strict=True)]
    return [M[i][d] / M[i][i] for i in range(d)], rows, y


def exact_excess(X, y, coef, intercept, shrink=Fraction(1)):
    """Half the squares of the distance of the fitted values from the best ones, over half those of y about its mean.

    For the coefficients as they are stored, in rational numbers. Without shrinking it is F less its minimum.
    """
    best, rows, y = exact_least_squares(X, y)
    mean = sum(y) / len(y)
    means = [sum(row[j] for row in rows) / len(rows) for j in range(len(best))]
    best = [shrink * b for b in best[:-1]]
    best.append(mean - sum(b * m for b, m in zip(best, means[:-1], strict=True)))
    stored = [*(Fraction(float(v)) for v in coef), Fraction(float(intercept))]
    away = [sum(a * (s - b) for a, s, b in zip(row, stored, best, strict=True)) for row in rows]
    return float(sum(a * a for a in away) / sum((t - mean) ** 2 for t in y))


LEVELS = [(1e9, 1e-3), (1e6, 1e-6), (1e9, 1.0), (1e3, 1.0)]


def far_rows(level, spread, dtype, p=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, p)).astype(dtype)
    return X, level + spread * (X @ ([1.0, -2.0] + [0.5] * (p - 2)) + rng.normal(size=40))


def assert_bounds(certificate, excess, dtype, tol, slack=0.0):
    assert certificate.value >= excess
    assert certificate.value <= 200 * excess + 0.01 * tol + slack  # and not by much more
    if dtype == np.float64:
        assert certificate.holds == (certificate.value <= tol)
    elif certificate.value > tol:  # float32 allows no less, and the certificate says so
        assert "stored as float32" in certificate.meaning


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("level", "spread"), LEVELS)
@pytest.mark.parametrize("solver", ["auto", "qr", "lbfgs"])
def test_the_rounding_of_what_is_stored_is_part_of_the_bound(level, spread, solver, dtype):
    X, y = far_rows(level, spread, dtype)
    with ep.config(on_nonconvergence="ignore"):
        model = LinearRegression(solver=solver).fit(X, y)
    assert_bounds(model.certificate_, exact_excess(X, y, model.coef_, model.intercept_), dtype, 1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("level", "spread"), LEVELS)
def test_the_rounding_of_shrunken_coefficients(level, spread, dtype):
    X, y = far_rows(level, spread, dtype, p=4)
    with ep.config(on_nonconvergence="ignore"):
        model = JamesStein().fit(X, y)
    assert model.shrinkage_ < 1
    excess = exact_excess(X, y, model.coef_, model.intercept_, Fraction(model.shrinkage_))
    assert_bounds(model.certificate_, excess, dtype, 1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("level", "spread"), LEVELS)
@pytest.mark.parametrize("far", [0.0, 1e7])
def test_the_rounding_of_a_generalized_linear_model(level, spread, far, dtype):
    """The Gaussian family, whose objective is a sum of squares; columns far from the origin are shifted in the fit."""
    X, y = far_rows(level, spread, dtype)
    X = X + dtype(far)
    with ep.config(on_nonconvergence="ignore"):
        model = GeneralizedLinearModel(tol=1e-8).fit(X, y)
    excess = exact_excess(X, y, model.coef_, model.intercept_)
    # Its gradient comes from linear predictors, each of which is rounded.
    hidden = (np.finfo(float).eps * level) ** 2 / np.var(y)
    assert_bounds(model.certificate_, excess, dtype, 1e-8, slack=hidden)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("level", "spread"), LEVELS)
@pytest.mark.parametrize("far", [0.0, 1e7])
def test_the_rounding_of_a_robust_fit(level, spread, far, dtype):
    X, y = far_rows(level, spread, dtype)
    X = X + dtype(far)
    y[:4] += 30 * spread
    with ep.config(on_nonconvergence="ignore"):
        model = HuberRegressor(alpha=0.0).fit(X, y)
    # The same problem about the mean has nothing to round; differences of numbers so close are exact.
    best = HuberRegressor(alpha=0.0, tol=1e-12).fit(X.astype(float) - far, (y - level) / spread)
    assert best.certificate_.holds

    def objective(w, b, sigma):
        w, b, sigma = (np.asarray(v, dtype=np.longdouble) for v in (w, b, sigma))
        z = np.abs((y - b) - X.astype(np.longdouble) @ w) / sigma
        return np.sum(sigma + sigma * np.where(z <= 1.35, z * z, 2.7 * z - 1.35**2))

    w = best.coef_.astype(np.longdouble) * spread
    b = level + (spread * best.intercept_.astype(np.longdouble) - far * w.sum())
    least = objective(w, b, spread * best.scale_)
    excess = float(objective(model.coef_, model.intercept_, model.scale_) / least - 1)
    assert_bounds(model.certificate_, max(excess * (1 - 1e-12) - 1e-12, 0.0), dtype, 1e-10)  # both are known so far
