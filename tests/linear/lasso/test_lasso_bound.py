"""The lasso with a bound on the L1 norm: against projected gradient, t <-> alpha both ways, a gap that is true."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from lasso_reference import alpha_max, centred
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes

import epicycle as ep
from epicycle import Lars, Lasso, LinearRegression
from epicycle.exceptions import ParameterError


def problem(n, p, seed, density=1.0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) * rng.uniform(0.3, 3.0, p) + 1.0) * (rng.random((n, p)) < density)
    y = X[:, : min(p, 6)] @ rng.standard_normal(min(p, 6)) + rng.standard_normal(n) + 2.0
    return X, y, rng.uniform(0.3, 2.0, n)


def onto_ball(v, t):
    """The nearest point with |w|_1 <= t: all coordinates shrink by the same amount (Duchi et al. 2008)."""
    if np.abs(v).sum() <= t:
        return v
    if t == 0:
        return np.zeros_like(v)
    u = np.sort(np.abs(v))[::-1]
    k = np.arange(1, len(u) + 1)
    last = np.flatnonzero(u * k > np.cumsum(u) - t)[-1]
    return np.sign(v) * np.maximum(np.abs(v) - (np.cumsum(u)[last] - t) / (last + 1), 0)


def projected_gradient(A, b, t, steps=20_000):
    """Accelerated projected gradient with restarts on 1/2 |b - Aw|^2, |w|_1 <= t."""
    G, c = A.T @ A, A.T @ b
    step = 1 / max(np.linalg.norm(A, 2) ** 2, 1e-300)
    w = z = np.zeros(A.shape[1])
    momentum = 1.0
    for _ in range(steps):
        new = onto_ball(z - step * (G @ z - c), t)
        if (z - new) @ (new - w) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        moved = np.abs(new - w).max()
        z, w, momentum = new + (momentum - 1) / following * (new - w), new, following
        if moved <= 1e-14 * np.abs(w).max(initial=1e-300):
            break
    return w


@pytest.mark.parametrize("form", [np.asfortranarray, np.ascontiguousarray, sp.csc_array, sp.csr_array])
@pytest.mark.parametrize("shape", [(60, 8), (40, 90)])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.6])
def test_agrees_with_projected_gradient(form, shape, share):
    X, y, weight = problem(*shape, seed=1, density=0.6 if "cs" in form.__name__ else 1.0)
    A, b, *_ = centred(X, y, weight)
    t = share * np.abs(np.linalg.lstsq(A, b, rcond=None)[0]).sum()
    model = Lasso(bound=t).fit(form(X), y, weight)
    w = projected_gradient(A, b, t)
    losses = [((b - A @ v) ** 2).sum() / (b @ b) for v in (model.coef_, w)]
    assert losses[0] <= losses[1] + 1e-8
    assert np.abs(model.coef_).sum() <= t * (1 + 1e-12)
    assert_allclose(model.coef_, w, rtol=0, atol=1e-5 * np.abs(w).max(initial=1.0))
    assert model.certificate_.holds


@pytest.mark.parametrize("shape", [(60, 8), (40, 90)])
@pytest.mark.parametrize("penalty_weights", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_bound_and_alpha_correspond_both_ways(shape, penalty_weights, positive):
    X, y, weight = problem(*shape, seed=2)
    factors = np.linspace(0.5, 2.0, shape[1]) if penalty_weights else None
    options = {"penalty_weights": factors, "positive": positive, "tol": 1e-12}
    largest = alpha_max(*centred(X, y, weight)[:2])
    for share in (0.5, 0.1, 0.01):
        penalised = Lasso(share * largest, **options).fit(X, y, weight)
        if not penalised.coef_.any():
            continue  # all large alphas give zero
        assert penalised.alpha_ == share * largest
        norm = (np.ones(shape[1]) if factors is None else factors) @ np.abs(penalised.coef_)
        assert_allclose(penalised.bound_, norm)
        bounded = Lasso(bound=penalised.bound_, **options).fit(X, y, weight)
        assert_allclose(bounded.alpha_, penalised.alpha_, rtol=1e-5)
        assert_allclose(bounded.coef_, penalised.coef_, rtol=0, atol=1e-6 * np.abs(penalised.coef_).max())
        again = Lasso(bounded.alpha_, **options).fit(X, y, weight)
        assert_allclose(again.bound_, penalised.bound_, rtol=1e-6)


def test_the_diabetes_path_by_its_bound():
    X, y = load_diabetes(return_X_y=True)
    path = Lars("lasso").fit(X, y)
    for t in (1.0, 100.0, 1000.0, 2000.0, 3400.0):
        model = Lasso(bound=t).fit(X, y)
        assert_allclose(model.coef_, path.at(bound=t)[0], rtol=0, atol=1e-7)
        assert_allclose(np.abs(path.at(model.alpha_)[0]).sum(), t, rtol=1e-9)


def test_features_without_penalty_have_no_bound():
    X, y, weight = problem(50, 10, seed=3)
    factors = np.ones(10)
    factors[[0, 4]] = 0.0
    model = Lasso(bound=0.5, penalty_weights=factors).fit(X, y, weight)
    assert_allclose(factors @ np.abs(model.coef_), 0.5)
    A, b, *_ = centred(X, y, weight)
    assert np.abs(A[:, [0, 4]].T @ (b - A @ model.coef_)).max() < 1e-9
    alone = Lasso(bound=0.0, penalty_weights=factors).fit(X, y, weight)
    assert_allclose(alone.coef_[[0, 4]], LinearRegression().fit(X[:, [0, 4]], y, weight).coef_)


@pytest.mark.parametrize("shape", [(60, 8), (20, 50)])
def test_a_bound_that_does_not_bind(shape):
    X, y, _ = problem(*shape, seed=4)
    for t in (1e3, 1e6, 1e12):
        model = Lasso(bound=t).fit(X, y)
        assert model.alpha_ == 0.0
        assert model.certificate_.holds
        assert_allclose(model.score(X, y), LinearRegression().fit(X, y).score(X, y), atol=1e-6)


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 30),
    p=st.integers(1, 40),
    sparse=st.booleans(),
    share=st.sampled_from([0.0, 0.01, 0.2, 0.7, 1.0, 1.2]),
    positive=st.booleans(),
    defect=st.sampled_from(["none", "constant", "twin", "wild", "far"]),
)
def test_a_certificate_that_holds_is_true(seed, n, p, share, sparse, positive, defect):
    X, y, weight = problem(n, p, seed, density=0.5 if sparse else 1.0)
    if defect == "constant":
        X[:, 0] = 7.0
    elif defect == "twin":
        X[:, -1] = -X[:, 0]
    elif defect == "wild":
        X *= 10.0 ** np.random.default_rng(seed).integers(-4, 5, p)
    elif defect == "far" and not sparse:
        X += 1e5
    A, b, *_ = centred(X, y, weight)
    t = share * np.abs(np.linalg.lstsq(A, b, rcond=None)[0]).sum()
    with ep.config(on_nonconvergence="ignore"):
        model = Lasso(bound=t, positive=positive).fit(sp.csc_array(X) if sparse else X, y, weight)
    assert model.certificate_.holds or defect == "wild"
    w = model.coef_
    assert np.abs(w).sum() <= t * (1 + 1e-12)
    assert not positive or (w >= 0).all()
    if not model.certificate_.holds:
        return
    best = projected_gradient_positive(A, b, t) if positive else projected_gradient(A, b, t, steps=800)
    losses = [((b - A @ v) ** 2).sum() / 2 for v in (w, best)]
    assert losses[0] - losses[1] <= (model.certificate_.value + 1e-11) * (b @ b) / 2


def projected_gradient_positive(A, b, t, steps=800):
    """Plain projected gradient on the positive part of the ball."""
    w, step = np.zeros(A.shape[1]), 1 / max(np.linalg.norm(A, 2) ** 2, 1e-300)
    for _ in range(steps):
        w = np.maximum(onto_ball(np.maximum(w - step * A.T @ (A @ w - b), 0), t), 0)
    return w


def test_evidence_targets_engines_and_file(tmp_path):
    import dask.array as da

    X, y, weight = problem(300, 12, seed=5)
    Y = np.column_stack([y, 3 * y])
    model = Lasso(bound=1.0).fit(X, Y, weight)
    assert model.alpha_.shape == model.bound_.shape == (2,)
    assert_allclose(model.bound_, 1.0)
    single = Lasso(bound=1.0).fit(X, y, weight)
    assert_allclose(model.coef_[0], single.coef_, atol=1e-9)
    assert {"objective", "gap", "alpha", "norm"} <= set(single.history_)
    assert single.n_iter_ == single.history_.n_iter
    assert "|w|_1 <= 1" in single.describe()
    dask = Lasso(bound=1.0).fit(*(da.from_array(a, chunks=100) for a in (X, y, weight)))
    assert_allclose(dask.coef_, single.coef_, atol=1e-8)
    single.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").predict(X), single.predict(X))
    with pytest.raises(ParameterError, match="bound"):
        Lasso(bound=-1.0).fit(X, y)


def test_warm_start():
    X, y, _ = problem(100, 400, seed=6)
    model = Lasso(0.1, warm_start=True).fit(X, y)
    rounds = model.n_iter_
    assert model.fit(X, y).n_iter_ == 0 < rounds
    assert_allclose(model.set_params(alpha=0.05).fit(X, y).coef_, Lasso(0.05).fit(X, y).coef_, atol=1e-3)
    bounded = Lasso(bound=2.0, warm_start=True).fit(X, y)
    assert bounded.fit(X, y).n_iter_ < 3
    cold = Lasso(0.1).fit(X, y)
    assert cold.fit(X, y).n_iter_ == rounds
