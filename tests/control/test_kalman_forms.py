"""Forms of Kalman's filter, diffuse starts, derivatives and maxima of the likelihood, several series."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle.control import KalmanFilter
from epicycle.exceptions import DataError


def draw(seed, changing=False, steps=12):
    """A random model with positive definite covariances, observations with gaps, and controls."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 4), rng.integers(1, 3)

    def covariance(size):
        L = rng.normal(size=(size, size))
        return L @ L.T + 0.2 * np.eye(size)

    def over_time(make):
        return np.stack([make() for _ in range(steps)]) if changing else make()

    model = KalmanFilter(
        over_time(lambda: rng.normal(size=(n, n)) / 2 + 0.5 * np.eye(n)),
        over_time(lambda: rng.normal(size=(p, n))),
        over_time(lambda: covariance(n)),
        over_time(lambda: covariance(p)),
        B=rng.normal(size=(n, 2)),
        d=rng.normal(size=p),
        mean=rng.normal(size=n),
        covariance=covariance(n),
    )
    y, u = rng.normal(size=(steps, p)), rng.normal(size=(steps, 2))
    y[rng.random(y.shape) < 0.2] = np.nan
    return model, y, u


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=20)
def test_forms_give_the_same_results(seed, changing):
    model, y, u = draw(seed, changing)
    plain = model.filter(y, u)
    smooth = model.smooth(y, u)
    for form in ("square_root", "information"):
        other = model.with_parameters(form=form)
        found = other.filter(y, u)
        assert found.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-8, abs=1e-8)
        for name in ("mean", "covariance", "predicted_mean", "predicted_covariance", "log_densities"):
            size = np.abs(getattr(plain, name)).max()
            assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-6, atol=1e-7 * size)
        assert_allclose(other.smooth(y, u).mean, smooth.mean, rtol=1e-6, atol=1e-7 * np.abs(smooth.mean).max())


def test_settled_roots_change_nothing():
    model = KalmanFilter([[0.9, 0.2], [0.0, 0.8]], [[1.0, 0.0]], np.diag([0.1, 0.3]), [[0.5]], form="square_root")
    _, y = model.sample(400, random_state=1)
    y[[100, 300]] = np.nan
    changing = model.with_parameters(A=np.repeat(model.A[None], 400, axis=0))  # not known to be constant
    assert_allclose(model.filter(y).mean, changing.filter(y).mean, rtol=1e-11, atol=1e-12)


def exact_inverse(M):
    """The inverse of a matrix of fractions."""
    n = len(M)
    rows = [[*map(Fraction, row), *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(M)]
    for j in range(n):
        pivot = next(i for i in range(j, n) if rows[i][j] != 0)
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [x / rows[j][j] for x in rows[j]]
        for i in range(n):
            if i != j:
                rows[i] = [x - rows[i][j] * z for x, z in zip(rows[i], rows[j], strict=True)]
    return np.array([[float(x) for x in row[n:]] for row in rows])


def test_the_square_root_form_stays_positive_where_the_plain_one_fails():
    # Two very precise looks in nearly the same direction at a state of which almost nothing was known.
    C = np.array([[1.0, 0.25, 0.75], [1.0, 0.25 + 2.0**-13, 0.75]])
    wide, fine = 2.0**27, 2.0**-27
    given = {"A": np.eye(3), "C": C, "W": np.zeros((3, 3)), "V": fine * np.eye(2), "covariance": wide * np.eye(3)}
    y = np.ones((4, 2))
    with pytest.raises(DataError, match="form='square_root'"):
        KalmanFilter(**given).filter(y)
    found = KalmanFilter(**given, form="square_root").filter(y).covariance
    assert (np.linalg.eigvalsh(found) > -1e-16 * wide).all()
    # Without noise of the dynamics the precision is that of the start plus t times that of one observation.
    rows = [[Fraction(x) for x in row] for row in C]
    for t in range(4):
        precision = [
            [sum(r[i] * r[j] for r in rows) * (t + 1) / Fraction(fine) + (i == j) / Fraction(wide) for j in range(3)]
            for i in range(3)
        ]
        exact = exact_inverse(precision)
        assert_allclose(found[t], exact, rtol=1e-2, atol=1e-6 * np.abs(exact).max())


def trend(steps=30, seed=0):
    """A local linear trend with gaps."""
    rng = np.random.default_rng(seed)
    given = {"A": [[1.0, 1.0], [0.0, 1.0]], "C": [[1.0, 0.0]], "W": np.diag([0.3, 0.05]), "V": [[0.8]]}
    y = np.cumsum(rng.normal(size=(steps, 1)), axis=0) + 5.0
    y[[0, 7, 8]] = np.nan
    return given, y


@pytest.mark.parametrize("form", ["covariance", "square_root"])
def test_a_diffuse_start_equals_statsmodels(form):
    statespace = pytest.importorskip("statsmodels.tsa.statespace.kalman_smoother")
    parameters, y = trend()
    peer = statespace.KalmanSmoother(k_endog=1, k_states=2)
    peer.bind(y)
    peer["design"], peer["transition"], peer["selection"] = np.array([[1.0, 0.0]]), np.array(parameters["A"]), np.eye(2)
    peer["obs_cov"], peer["state_cov"] = np.array(parameters["V"]), parameters["W"]
    peer.initialize_diffuse()
    expected = peer.smooth()
    model = KalmanFilter(**parameters, diffuse=True, form=form)
    filtered, smoothed = model.filter(y), model.smooth(y)
    assert model.log_likelihood(y) == pytest.approx(expected.llf, rel=1e-10)
    assert filtered.log_densities.sum() == pytest.approx(expected.llf, rel=1e-10)
    assert_allclose(smoothed.mean, expected.smoothed_state.T, rtol=1e-7, atol=1e-8)
    assert_allclose(smoothed.covariance, expected.smoothed_state_cov.transpose(2, 0, 1), rtol=1e-7, atol=1e-8)
    assert_allclose(filtered.mean[3:], expected.filtered_state.T[3:], rtol=1e-7, atol=1e-8)
    assert_allclose(filtered.covariance[3:], expected.filtered_state_cov.transpose(2, 0, 1)[3:], rtol=1e-7, atol=1e-8)
    assert np.isinf(filtered.covariance[0].diagonal()).all()  # nothing was seen yet


def test_a_diffuse_start_is_the_limit_of_wide_priors():
    parameters, y = trend()
    model = KalmanFilter(**parameters, diffuse=[1], mean=[4.0, 0.0], covariance=np.diag([2.0, 0.0]))
    found = model.smooth(y)
    errors, values = [], []
    for k in (1e4, 1e5, 1e6):
        wide = KalmanFilter(**parameters, mean=[4.0, 0.0], covariance=np.diag([2.0, k])).smooth(y)
        errors.append(np.abs(wide.mean - found.mean).max())
        values.append(abs(wide.log_likelihood + 0.5 * np.log(k) - found.log_likelihood))
        if k < 1e6:  # wider ones lose more digits than they gain
            assert_allclose(wide.lag_covariance, found.lag_covariance, atol=10 / k)
    for series in (errors, values):  # the distance falls like 1 / k
        assert series[0] > 5 * series[1] > 25 * series[2]
        assert series[2] < 1e-4
    forecast, spread = model.forecast(y, 3)
    assert_allclose(forecast[0], wide_forecast(parameters, y)[0], rtol=1e-4)
    assert np.isfinite(spread).all()


def wide_forecast(parameters, y):
    return KalmanFilter(**parameters, mean=[4.0, 0.0], covariance=np.diag([2.0, 1e6])).forecast(y, 3)[0]


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=10)
def test_the_gradient_equals_differences(seed, diffuse):
    model, y, u = draw(seed)
    y = np.vstack([np.nan_to_num(y[:4], nan=0.3), y[4:]])
    names = ("A", "C", "W", "V", "B", "b", "D", "d", "mean", "covariance")
    if diffuse:
        model, names = model.with_parameters(diffuse=[0]), names[:-2]
    found = model.gradient([y, y[:8]], [u, u[:8]], parameters=names)
    for name in names:
        M = np.atleast_1d(getattr(model, name))
        for place in np.ndindex(M.shape):
            change = np.zeros_like(M)
            change[place] = 1e-5
            if name in ("W", "V", "covariance"):
                change = (change + change.T) / 2
            high, low = (
                model.with_parameters(**{name: M + sign * change}).log_likelihood([y, y[:8]], [u, u[:8]]).sum()
                for sign in (1, -1)
            )
            expected = (high - low) / 2e-5
            assert found[name][place] == pytest.approx(expected, rel=1e-4, abs=2e-5 * max(1, np.abs(found[name]).max()))


@pytest.mark.parametrize("diffuse", [False, True])
def test_the_maximum_is_at_least_that_of_em(diffuse):
    truth = KalmanFilter([[0.9, 0.3], [-0.3, 0.8]], [[1.0, 0.5], [0.0, 1.0]], np.diag([1.0, 0.6]), np.diag([0.5, 0.4]))
    _, y = truth.sample(120, random_state=3)
    y[::9] = np.nan
    start = truth.with_parameters(W=2 * np.eye(2), V=np.eye(2), diffuse=diffuse)
    names = ["A", "W", "V"]
    em = start.fit(y, learn_parameters=names, tol=1e-5)
    best = start.fit(y, learn_parameters=names, method="ml", tol=1e-5)
    assert best.certificate_.holds
    assert best.log_likelihood(y) >= em.log_likelihood(y) - 1e-9
    assert best.history_["log_likelihood"][-1] == pytest.approx(best.log_likelihood(y), rel=1e-9)
    slope = best.gradient(y, parameters=names)
    assert max(np.abs(G).max() for G in slope.values()) < 1e-2
    assert_allclose(best.C, start.C)


def test_controls_and_constants_are_learnt():
    truth = KalmanFilter([[0.7]], [[1.0]], [[0.1]], [[0.2]], B=[[0.5, -1.0]], D=[[0.0, 2.0]], b=[0.3], d=[-1.0])
    u = np.random.default_rng(0).normal(size=(1500, 2))
    _, y = truth.sample(1500, u, random_state=1)
    y[::11] = np.nan
    start = truth.with_parameters(B=np.zeros((1, 2)), D=np.zeros((1, 2)), d=[0.0])
    names = ["B", "D", "d", "W"]
    em = start.fit(y, u, learn_parameters=names, tol=1e-8, max_iter=3000)
    best = start.fit(y, u, learn_parameters=names, method="ml", tol=1e-7)
    assert (np.diff(em.history_["log_likelihood"]) >= -1e-9).all()
    for name in names:
        assert_allclose(getattr(em, name), getattr(best, name), atol=2e-3)
        assert_allclose(getattr(best, name), getattr(truth, name), atol=0.08)


def test_several_series_are_each_as_alone_on_any_number_of_threads():
    model, y, u = draw(5, steps=40)
    several, controls = np.stack([y, y + 1, 2 * y]), np.stack([u, u, -u])
    alone = [model.smooth(s, c) for s, c in zip(several, controls, strict=True)]
    for jobs in (1, 2):
        together = model.smooth(several, controls, n_jobs=jobs)
        assert all(np.array_equal(a.mean, b.mean) for a, b in zip(alone, together, strict=True))
        assert np.array_equal(
            model.log_likelihood(list(several), list(controls), n_jobs=jobs), [a.log_likelihood for a in alone]
        )
    assert len(model.filter([y, y[:7]], [u, u[:7]])[1].mean) == 7
    fits = [model.fit(several, controls, max_iter=3, tol=1e6, n_jobs=jobs) for jobs in (1, 2)]
    assert np.array_equal(fits[0].A, fits[1].A)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": "cubic"}, "form='cubic'"),
        ({"form": "information", "A": [[0.0]], "W": [[0.0]]}, "form='information': A A' . W is singular"),
        ({"form": "information", "diffuse": True}, "covariance of the first state has the eigenvalue 0"),
        ({"diffuse": [3]}, "diffuse=.* expected a bool, a mask of 1 components"),
    ],
)
def test_bad_forms(change, message):
    with pytest.raises(ValueError, match=message):
        KalmanFilter(**{"A": [[0.5]], "C": [[1.0]], "W": [[1.0]], "V": [[1.0]], **change})


def test_what_cannot_be_known_or_learnt_is_named():
    parameters, y = trend()
    model = KalmanFilter(**parameters, diffuse=True)
    with pytest.raises(DataError, match="do not determine the diffuse start"):
        model.smooth(y[:2])
    with pytest.raises(DataError, match="mean and covariance of a diffuse start"):
        model.fit(y, learn_parameters=["mean"])
    rigid = KalmanFilter([[0.5]], [[1.0]], [[0.0]], [[1.0]], covariance=[[1.0]])
    with pytest.raises(DataError, match="W: it is singular"):
        rigid.gradient(y, parameters=["A"])
    assert rigid.gradient(y, parameters=["V"])["V"].shape == (1, 1)
