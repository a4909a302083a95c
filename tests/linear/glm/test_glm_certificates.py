"""Whatever a certificate says is true: against minima in extended precision, on random and on nasty problems."""

import warnings

import numpy as np
import pytest
from glm_reference import minimum, objective
from hypothesis import given, settings, strategies as st

import epicycle as ep
from epicycle import GeneralizedLinearModel
from epicycle.exceptions import DataError, SeparationError
from epicycle.linear import families
from epicycle.stats.links import as_link

KINDS = {
    ("gaussian",): ("gaussian", "auto"),
    ("binomial",): ("binomial", "auto"),
    ("poisson",): ("poisson", "auto"),
    ("gamma",): ("gamma", "auto"),
    ("tweedie", 1.3): (families.Tweedie(1.3), "auto"),
    ("negative_binomial", 0.7): (families.NegativeBinomial(0.7), "auto"),
    ("gamma-inverse",): ("gamma", "inverse"),
    ("poisson-sqrt",): ("poisson", "sqrt"),
    ("cloglog",): ("binomial", "cloglog"),
}


def draw_problem(kind, seed, n, p, shape):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    if shape == "collinear" and p > 1:
        X[:, -1] = X[:, 0] * 2
    elif shape == "constant":
        X[:, 0] = 3.0
    elif shape == "wild":
        X *= 10.0 ** rng.integers(-6, 7, p)
    elif shape == "far":
        X += 1e5
    elif shape == "indicators":
        X = (X > 0.8).astype(float)
    mu = np.exp(np.clip(0.5 * rng.standard_normal(n) + 0.3, -3, 3))
    name = kind[0].split("-")[0]
    if name == "gaussian":
        y = rng.standard_normal(n)
    elif name in ("binomial", "cloglog"):
        y = (rng.random(n) < 0.5).astype(float)
    elif name in ("poisson", "negative_binomial"):
        y = rng.poisson(mu).astype(float)
    elif name == "gamma":
        y = rng.gamma(2.0, mu / 2)
    else:
        y = rng.poisson(mu) * rng.gamma(2.0, 0.5, n)
    return X, y, rng


@settings(max_examples=200)
@given(
    kind=st.sampled_from(sorted(KINDS, key=str)),
    seed=st.integers(0, 10_000),
    n=st.integers(2, 40),
    p=st.integers(1, 3),
    shape=st.sampled_from(["plain", "collinear", "constant", "wild", "far", "indicators"]),
    penalty=st.sampled_from([(0.0, 0.0), (1e-3, 0.0), (1.0, 0.0), (0.05, 1.0), (0.3, 0.5)]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    with_offset=st.booleans(),
    free=st.booleans(),
)
def test_every_certificate_is_true(kind, seed, n, p, shape, penalty, intercept, weighted, with_offset, free):
    X, y, rng = draw_problem(kind, seed, n, p, shape)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    if weighted and not weight.any():
        weight[0] = 1.0
    domain = kind[0] in ("gamma-inverse", "poisson-sqrt")
    offset = 0.1 * rng.standard_normal(n) if with_offset and not domain else None
    alpha, rho = penalty
    family, link = KINDS[kind]
    factors = np.append(0.0, np.ones(p - 1)) if free else np.ones(p)
    model = GeneralizedLinearModel(
        family, link=link, alpha=alpha, l1_ratio=rho, penalty_weights=factors, fit_intercept=intercept, max_iter=300
    )
    with warnings.catch_warnings(), ep.config(on_nonconvergence="ignore"):
        warnings.simplefilter("error")
        try:
            model.fit(X, y, weight, offset=offset)
        except (SeparationError, DataError):
            assert alpha == 0 or intercept or domain or free  # no maximum, or no place to start from
            return
    w, b = model.coef_, float(model.intercept_)
    assert np.isfinite(w).all()
    counted = np.ones(n, dtype=bool) if weight is None else weight > 0
    low, high = as_link(model.link_).domain if domain else (-np.inf, np.inf)
    eta = model.predict_linear(X, offset=offset)
    inside = (eta > low) & (eta < high)
    assert inside[counted].all()  # rows of weight 0 may lie where the link has no mean, and are refused by name
    assert np.isfinite(model.predict(X[inside], offset=None if offset is None else offset[inside])).all()
    if not inside.all():
        with pytest.raises(DataError, match=f"first in row {np.flatnonzero(~inside)[0]}"):
            model.predict(X, offset=offset)
    certificate = model.certificate_
    if not certificate.holds:
        return
    l1, l2 = alpha * rho * factors, alpha * (1 - rho) * factors
    reached = objective(kind, X, y, weight, l1, l2, w, b, offset)
    # About the mean of the columns, where the reference is accurate however far the data is.
    centre = X.mean(axis=0) if intercept else np.zeros(p)
    guess = np.append(w, b + centre @ w) if intercept else w
    best, sure = minimum(kind, X - centre, y, weight, l1, l2, intercept, guess, offset)
    if not sure:
        return
    v = np.ones(n) if weight is None else weight
    null = objective(kind, X[:, :0], y, weight, 0, 0, np.zeros(0), _constant(kind, y, v), None)
    scale = float(null) if "null model" in certificate.meaning else 2.0 + float(np.abs(y).mean()) * 10
    rounding = 1e-13 * (1 + abs(float(reached))) + 1e-11 * (shape == "far")
    assert float(reached - best) <= max(certificate.value, 1e-12) * 3 * scale + rounding


def _constant(kind, y, v):
    mean = float(v @ y / v.sum())
    name = kind[0]
    if name == "gaussian":
        return mean
    if name == "gamma-inverse":
        return 1 / mean
    if name == "poisson-sqrt":
        return np.sqrt(max(mean, 1e-300))
    if name in ("binomial", "cloglog"):
        mean = min(max(mean, 1e-12), 1 - 1e-12)
        return np.log(mean / (1 - mean)) if name == "binomial" else np.log(-np.log1p(-mean))
    return np.log(max(mean, 1e-300))


def test_most_of_them_hold():
    """The bounds are not only true but good enough: ordinary problems are certified, by every family and penalty."""
    for kind, (family, link) in KINDS.items():
        for alpha, rho in ((0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.1, 0.5)):
            X, y, _ = draw_problem(kind, 1, 200, 4, "plain")
            model = GeneralizedLinearModel(family, link=link, alpha=alpha, l1_ratio=rho).fit(X / 10, y)
            assert model.certificate_.holds, (kind, alpha, rho)
            assert model.certificate_.kind in ("newton decrement", "penalty bound")


@pytest.mark.parametrize("family", ["inverse_gaussian", families.Tweedie(2.5)])
def test_what_is_not_convex_says_so(family):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    model = GeneralizedLinearModel(family).fit(X, rng.wald(np.exp(0.2 * X[:, 0]), 2.0))
    assert model.certificate_.kind == "stationarity"
    assert model.certificate_.holds
    assert "need not be the lowest" in model.certificate_.meaning


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_more_columns_than_rows(alpha, rho):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 300))
    y = rng.poisson(np.exp(0.4 * X[:, 0]))
    model = GeneralizedLinearModel("poisson", alpha=alpha, l1_ratio=rho).fit(X, y)
    assert model.certificate_.holds
    g = -X.T @ (y - model.predict(X)) / len(y) + alpha * (1 - rho) * model.coef_
    on = model.coef_ != 0
    assert np.abs(g[on] + alpha * rho * np.sign(model.coef_[on])).max() < 1e-5
    assert (np.abs(g[~on]) <= alpha * rho + 1e-6).all()


def test_an_unconverged_fit_warns_and_does_not_hold():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5))
    y = rng.gamma(1.0, np.exp(3 * X[:, 0]))
    with pytest.warns(ep.exceptions.ConvergenceWarning, match="max_iter"):
        model = GeneralizedLinearModel("gamma", max_iter=1, solver="gd").fit(X, y)
    assert not model.certificate_.holds
    assert not model.converged_


@pytest.mark.parametrize(("family", "y"), [("poisson", [0, 0, 0, 2, 1, 3]), ("binomial", [0, 0, 0, 1, 1, 1])])
def test_no_maximum_is_named_with_the_column(family, y):
    X = np.column_stack([np.r_[np.ones(3), np.zeros(3)], np.arange(6.0) % 2])
    with pytest.raises(SeparationError, match="x0"):
        GeneralizedLinearModel(family).fit(X, y)
    assert GeneralizedLinearModel(family, alpha=0.1).fit(X, y).certificate_.holds
