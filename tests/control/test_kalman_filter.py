"""Kalman's filter and smoother against the joint Gaussian of all states and observations, in one block; EM."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from epicycle.control import KalmanFilter
from epicycle.exceptions import ConvergenceWarning, DataError


def draw(seed, steps=None, changing=False):
    """A random model, observations with gaps, and controls."""
    rng = np.random.default_rng(seed)
    n, p, k = rng.integers(1, 4), rng.integers(1, 4), rng.integers(0, 3)
    T = steps or rng.integers(1, 7)

    def over_time(make):
        return np.stack([make() for _ in range(T)]) if changing else make()

    def covariance(size, floor=0.1):
        L = rng.normal(size=(size, size))
        return L @ L.T + floor * np.eye(size)

    W = over_time(lambda: covariance(n))
    if rng.random() < 0.3:  # the dynamics may be free of noise in some directions
        W = W * 0
    model = KalmanFilter(
        over_time(lambda: rng.normal(size=(n, n)) / 2),
        over_time(lambda: rng.normal(size=(p, n))),
        W,
        over_time(lambda: covariance(p)),
        B=rng.normal(size=(n, k)) if k else None,
        D=rng.normal(size=(p, k)) if k else None,
        b=rng.normal(size=n),
        d=rng.normal(size=p),
        mean=rng.normal(size=n),
        covariance=covariance(n),
    )
    y = rng.normal(size=(T, p))
    y[rng.random((T, p)) < 0.25] = np.nan
    return model, y, rng.normal(size=(T, k)) if k else None


def joint(model, T, u):
    """Mean and covariance of (x0, ..., x_T-1, y0, ..., y_T-1)."""
    _, A, C, W, V, a, c, mean, cov = model._given(np.zeros((T, model.C.shape[-2])), u)
    at = lambda M, t: M[t] if len(M) > 1 else M[0]  # noqa: E731
    n = len(mean)
    # x = F (x0, w0, ..., w_T-2) + constants
    means, maps = [mean], [np.hstack([np.eye(n), np.zeros((n, n * (T - 1)))])]
    for t in range(T - 1):
        step = np.zeros((n, n * T))
        step[:, n * (t + 1) : n * (t + 2)] = np.eye(n)
        means.append(at(A, t) @ means[-1] + a[t])
        maps.append(at(A, t) @ maps[-1] + step)
    F = np.vstack(maps)
    X = F @ scipy.linalg.block_diag(cov, *(at(W, t) for t in range(T - 1))) @ F.T
    H = scipy.linalg.block_diag(*(at(C, t) for t in range(T)))
    noise = scipy.linalg.block_diag(*(at(V, t) for t in range(T)))
    m = np.concatenate(means)
    return np.concatenate([m, H @ m + c.ravel()]), np.block([[X, X @ H.T], [H @ X, H @ X @ H.T + noise]])


def conditional(mean, cov, seen, values, of):
    G = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, of)]).T
    return mean[of] + G @ (values - mean[seen]), cov[np.ix_(of, of)] - G @ cov[np.ix_(seen, of)]


@given(st.integers(0, 2**32), st.booleans())
def test_filter_and_smoother_are_the_conditional_distributions_of_one_gaussian(seed, changing):
    model, y, u = draw(seed, changing=changing)
    T, n, p = len(y), model.A.shape[-1], model.C.shape[-2]
    mean, cov = joint(model, T, u)
    filtered, smoothed = model.filter(y, u), model.smooth(y, u)
    every = n * T + np.flatnonzero(~np.isnan(y.ravel()))
    values = y.ravel()[~np.isnan(y.ravel())]
    size = max(np.abs(mean).max(), np.abs(cov).max())
    if len(every):
        expected = multivariate_normal(mean[every], cov[np.ix_(every, every)]).logpdf(values)
        assert filtered.log_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-8)
        assert model.log_likelihood(y, u) == pytest.approx(expected, rel=1e-9, abs=1e-8)
        assert filtered.log_densities.sum() == pytest.approx(filtered.log_likelihood)
    for t in range(T):
        state = np.arange(n * t, n * (t + 1))
        so_far = every[every < n * T + p * (t + 1)]
        before = every[every < n * T + p * t]
        for seen, got in (
            (so_far, (filtered.mean[t], filtered.covariance[t])),
            (before, (filtered.predicted_mean[t], filtered.predicted_covariance[t])),
            (every, (smoothed.mean[t], smoothed.covariance[t])),
        ):
            m, P = conditional(mean, cov, seen, y.ravel()[seen - n * T], state)
            assert_allclose(got[0], m, rtol=1e-7, atol=1e-9 * size)
            assert_allclose(got[1], P, rtol=1e-7, atol=1e-9 * size)
        if t + 1 < T:
            both = np.arange(n * t, n * (t + 2))
            P = conditional(mean, cov, every, values, both)[1]
            assert_allclose(smoothed.lag_covariance[t], P[n:, :n], rtol=1e-7, atol=1e-9 * size)


def test_forecasts_are_the_conditional_distribution_of_what_follows():
    model, y, u = draw(11, steps=7)
    T, n, p = 7, model.A.shape[-1], model.C.shape[-2]
    mean, cov = joint(model, T, u)
    seen = n * T + np.flatnonzero(~np.isnan(y[:4].ravel()))
    m, P = conditional(mean, cov, seen, y.ravel()[seen - n * T], np.arange(n * T + 4 * p, len(mean)))
    forecast, covariance = model.forecast(y[:4], 3, u)
    assert_allclose(forecast.ravel(), m, rtol=1e-8)
    assert_allclose(covariance[1], P[p : 2 * p, p : 2 * p], rtol=1e-8)


def test_settled_covariances_change_nothing():
    model = KalmanFilter([[0.9, 0.2], [0.0, 0.8]], [[1.0, 0.0]], np.diag([0.1, 0.3]), [[0.5]])
    _, y = model.sample(500, random_state=1)
    y[[100, 101, 300]] = np.nan
    steps = np.repeat(model.A[None], 500, axis=0)  # the same model, which is not known to be constant
    plain = model.with_parameters(A=steps).filter(y)
    quick = model.filter(y)
    assert_allclose(quick.mean, plain.mean, rtol=1e-12, atol=1e-13)
    assert_allclose(quick.covariance, plain.covariance, rtol=1e-13)
    assert quick.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-13)
    quick, plain = model.smooth(y), model.with_parameters(A=steps).smooth(y)
    for name in ("mean", "covariance", "lag_covariance"):
        assert_allclose(getattr(quick, name), getattr(plain, name), rtol=1e-11, atol=1e-13)


@given(st.integers(0, 2**32))
@settings(max_examples=15)
def test_em_never_lowers_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    model, _, _ = draw(seed)
    W = model.W + 0.1 * np.eye(len(model.W))
    model = KalmanFilter(model.A, model.C, W, model.V, mean=model.mean, covariance=model.covariance)
    series = [model.sample(int(T), random_state=i)[1] for i, T in enumerate(rng.integers(3, 15, size=2))]
    for y in series:
        y[rng.random(y.shape) < 0.2] = np.nan
    start = model.with_parameters(A=0.5 * model.A, V=model.V + np.eye(len(model.V)), C=model.C + 0.3)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted = start.fit(series, max_iter=8, tol=1e-300)
    values = fitted.history_["log_likelihood"]
    assert (np.diff(values) >= -1e-8 * np.abs(values).max()).all()
    assert values[0] == pytest.approx(sum(start.log_likelihood(y) for y in series))


def test_em_ends_where_no_parameter_is_better():
    truth = KalmanFilter([[0.8]], [[1.0]], [[0.3]], [[0.5]])
    _, y = truth.sample(400, random_state=3)
    y[::7] = np.nan
    fitted = truth.fit(y, learn_parameters=["A", "W", "V"], tol=1e-11, max_iter=5000)
    assert fitted.certificate_.holds
    best = fitted.log_likelihood(y)
    assert best > truth.log_likelihood(y)
    for name in ("A", "W", "V"):
        for factor in (0.98, 1.02):
            changed = fitted.with_parameters(**{name: getattr(fitted, name) * factor})
            assert changed.log_likelihood(y) < best + 1e-6


def test_samples_have_the_moments_of_the_model():
    model, _, u = draw(21, steps=3)
    drawn = [np.concatenate([part.ravel() for part in model.sample(3, u, random_state=i)]) for i in range(4000)]
    mean, cov = joint(model, 3, u)
    assert (np.abs(np.mean(drawn, axis=0) - mean) < 4.5 * np.sqrt(np.diag(cov) / 4000)).all()
    assert_allclose(np.cov(np.array(drawn).T), cov, atol=0.12 * np.abs(cov).max())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": [[2.0]]}, "A has an eigenvalue of size 2"),
        ({"V": [[0.0]]}, "V: its smallest eigenvalue is 0"),
        ({"W": [[-1.0]]}, "W: its smallest eigenvalue is -1"),
        ({"C": [[1.0, 2.0]]}, r"C: got shape \(1, 2\); expected \(1, 1\)"),
        ({"mean": [1, 2]}, r"mean: got shape \(2,\)"),
        ({"covariance": [[-1.0]]}, "covariance: expected no negative eigenvalue"),
    ],
)
def test_bad_models(change, message):
    with pytest.raises(DataError, match=message):
        KalmanFilter(**({"A": [[0.5]], "C": [[1.0]], "W": [[1.0]], "V": [[1.0]]} | change))


def test_bad_observations():
    model = KalmanFilter([[0.5]], [[1.0]], [[1.0]], [[1.0]], B=[[1.0]])
    with pytest.raises(DataError, match=r"u: got shape \(0,\); expected \(3, 1\)"):
        model.filter(np.zeros((3, 1)))
    for y, message in (("abc", "y: expected numbers"), (np.zeros((3, 2)), r"expected \(T, 1\)"), ([np.inf], "NaN")):
        with pytest.raises(DataError, match=message):
            model.filter(y, np.zeros((3, 1)))
    with pytest.raises(DataError, match="learn_parameters"):
        model.fit(np.zeros((3, 1)), np.zeros((3, 1)), learn_parameters=["form"])
