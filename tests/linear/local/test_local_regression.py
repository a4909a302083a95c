"""LocallyWeightedRegression against the weighted normal equations written out, at every query."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.exceptions import DataError, DataTypeError, ParameterError

KERNELS = {
    "tricube": lambda d: np.where(d < 1, (1 - d**3) ** 3, 0),
    "epanechnikov": lambda d: np.where(d < 1, 1 - d**2, 0),
    "biweight": lambda d: np.where(d < 1, (1 - d**2) ** 2, 0),
    "triweight": lambda d: np.where(d < 1, (1 - d**2) ** 3, 0),
    "triangular": lambda d: np.where(d < 1, 1 - d, 0),
    "uniform": lambda d: np.where(d <= 1, 1.0, 0),
    "gaussian": lambda d: np.exp(-(d**2) / 2),
}


def terms(V, degree):
    """1, the columns, their products."""
    p = V.shape[1]
    pairs = [V[:, i] * V[:, j] for i in range(p) for j in range(i + 1)] if degree == 2 else []
    return np.column_stack([np.ones(len(V)), *(V.T if degree else []), *pairs])


def normal_equations(X, y, w, query, h, kernel, degree, metric=None):
    """(value, row l of the smoother) at one query: (P'KP)^-1 P'K y, nothing clever."""
    V = X - query
    S = np.eye(X.shape[1]) if metric is None else metric
    d = np.sqrt(np.einsum("ij,ij->i", V, np.linalg.solve(S, V.T).T)) / h
    k = KERNELS[kernel](d) * w
    P = terms(V, degree)
    row = np.linalg.solve(P.T @ (k[:, None] * P), P.T * k)[0]
    return row @ y, row


def problem(n=120, p=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    return X, np.sin(3 * X).sum(axis=1) + 0.1 * rng.normal(size=n), rng.uniform(0.5, 2, size=n)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_the_normal_equations(kernel, degree, p):
    X, y, w = problem(n=150, p=p)
    h = (0.5 if kernel == "gaussian" else 1.5) * (1 if p < 3 else 1.4)
    model = ep.LocallyWeightedRegression(h, degree=degree, kernel=kernel).fit(X, y, w)
    queries = np.random.default_rng(1).uniform(-1, 1, size=(40, p))
    expected = [normal_equations(X, y, w, q, h, kernel, degree)[0] for q in queries]
    assert_allclose(model.predict(queries), expected, rtol=1e-8, atol=1e-8)
    rows = np.array([normal_equations(X, y, w, q, h, kernel, degree)[1] for q in X])
    assert_allclose(model.fitted_values_, rows @ y, rtol=1e-8, atol=1e-8)
    assert model.effective_dof_ == pytest.approx(np.trace(rows), rel=1e-8)
    variance_free = len(y) - 2 * np.trace(rows) + np.sum(rows**2 / w * w[:, None])
    assert model.residual_dof_ == pytest.approx(variance_free, rel=1e-7)
    assert model.fallbacks_ == {"flat": 0, "nearest": 0}
    assert model.certificate_.holds


def test_metric():
    X, y, w = problem(p=2)
    S = np.array([[2.0, 0.5], [0.5, 0.3]])
    queries = X[:20] + 0.01
    expected = [normal_equations(X, y, w, q, 1.0, "gaussian", 1, S)[0] for q in queries]
    assert_allclose(
        ep.LocallyWeightedRegression(1.0, kernel="gaussian", metric=S).fit(X, y, w).predict(queries),
        expected,
        rtol=1e-9,
    )
    diagonal = ep.LocallyWeightedRegression(1.0, metric=[4.0, 4.0]).fit(X, y)
    assert_allclose(diagonal.predict(queries), ep.LocallyWeightedRegression(2.0).fit(X, y).predict(queries), rtol=1e-10)
    one = ep.LocallyWeightedRegression(0.5, metric=[4.0]).fit(X[:, :1], y)
    assert_allclose(one.predict(X[:, :1]), ep.LocallyWeightedRegression(1.0).fit(X[:, :1], y).predict(X[:, :1]))


@pytest.mark.parametrize("p", [1, 2])
def test_span_is_the_distance_to_the_last_neighbour(p):
    X, y, _ = problem(n=101, p=p)
    model = ep.LocallyWeightedRegression(span=0.35).fit(X, y)
    k = int(0.35 * 101)
    queries = np.random.default_rng(1).uniform(-1.2, 1.2, size=(30, p))
    for q, value in zip(queries, model.predict(queries), strict=True):
        h = np.sort(np.linalg.norm(X - q, axis=1))[k - 1]
        assert value == pytest.approx(normal_equations(X, y, np.ones(101), q, h, "tricube", 1)[0], rel=1e-9)


def test_a_global_polynomial_is_reproduced():
    X, _, w = problem(p=2)
    y = 1 + 2 * X[:, 0] - X[:, 1] + 3 * X[:, 0] * X[:, 1] - X[:, 1] ** 2
    model = ep.LocallyWeightedRegression(span=0.5, degree=2).fit(X, y, w)
    assert_allclose(model.fitted_values_, y, atol=1e-9)


@pytest.mark.parametrize("kernel", ["tricube", "gaussian"])
def test_leave_one_out_is_exact_and_picks_the_least_error(kernel):
    X, y, _ = problem(n=60)
    grid = [0.1, 0.3, 1.0, 3.0]
    model = ep.LocallyWeightedRegression("loo", kernel=kernel, candidates=grid).fit(X, y)
    for h, error in zip(grid, model.candidate_errors_, strict=True):
        missed = []
        for i in range(60):
            kept = np.arange(60) != i
            alone = ep.LocallyWeightedRegression(h, kernel=kernel).fit(X[kept], y[kept])
            missed.append(y[i] - alone.predict(X[[i]])[0])
        if np.isfinite(error):
            assert error == pytest.approx(np.mean(np.square(missed)), rel=1e-6)
    assert model.bandwidth_ == grid[int(np.argmin(model.candidate_errors_))]


def test_generalised_cross_validation():
    X, y, _ = problem(n=80)
    grid = [0.2, 0.5, 2.0]
    model = ep.LocallyWeightedRegression("gcv", candidates=grid).fit(X, y)
    for h, error in zip(grid, model.candidate_errors_, strict=True):
        fit = ep.LocallyWeightedRegression(h).fit(X, y)
        expected = np.mean((y - fit.fitted_values_) ** 2) / (1 - fit.effective_dof_ / 80) ** 2
        assert error == pytest.approx(expected, rel=1e-9)
    own = ep.LocallyWeightedRegression("loo").fit(X, y)
    assert len(own.candidates_) == 20
    assert 0.05 < own.bandwidth_ < 2
    assert np.mean((own.fitted_values_ - np.sin(3 * X[:, 0])) ** 2) < 0.005


@pytest.mark.slow
def test_coverage_of_the_band():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 1, size=80))[:, None]
    w = rng.uniform(0.3, 3, size=80)
    at = np.array([[0.05], [0.3], [0.62], [0.95]])
    truth = lambda v: 1 + 2 * v[:, 0]  # noqa: E731 - a straight line, which local lines follow without bias
    inside = np.zeros(4)
    for _ in range(500):
        y = truth(x) + rng.normal(size=80) / np.sqrt(w)
        _, low, high = ep.LocallyWeightedRegression(0.3).fit(x, y, w).confidence_band(at, 0.9)
        inside += (low <= truth(at)) & (truth(at) <= high)
    assert_allclose(inside / 500, 0.9, atol=0.045)


def test_sigma_is_unbiased():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 50)[:, None]
    found = [ep.LocallyWeightedRegression(0.2).fit(x, 3 * rng.normal(size=50)).sigma_ ** 2 for _ in range(200)]
    assert np.mean(found) == pytest.approx(9.0, rel=0.05)


# ------------------------------------------------------------------- neighbourhoods that cannot carry the polynomial


def test_ties_give_their_mean():
    x = np.repeat([0.0, 1.0, 5.0], 4)[:, None]
    y = np.arange(12.0)
    model = ep.LocallyWeightedRegression(0.5).fit(x, y)
    assert_allclose(model.fitted_values_, np.repeat([1.5, 5.5, 9.5], 4))
    assert model.fallbacks_ == {"flat": 12, "nearest": 0}
    by_span = ep.LocallyWeightedRegression(span=0.25).fit(x, y)  # the third neighbour is at distance zero
    assert_allclose(by_span.fitted_values_, np.repeat([1.5, 5.5, 9.5], 4))
    two = np.hstack([x, x])
    assert_allclose(ep.LocallyWeightedRegression(0.5).fit(two, y).fitted_values_, np.repeat([1.5, 5.5, 9.5], 4))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("kernel", ["tricube", "gaussian"])
def test_out_of_reach_the_nearest_point_answers(kernel, p):
    X, y, _ = problem(p=p)
    model = ep.LocallyWeightedRegression(0.3, kernel=kernel).fit(X, y)
    far = np.full((1, p), 100.0)
    assert model.predict(far)[0] == y[np.argmin(np.linalg.norm(X - far, axis=1))]


def test_points_on_a_line_in_the_plane():
    t = np.linspace(0, 1, 50)
    X = np.column_stack([t, 2 * t])
    y = 3 * t
    model = ep.LocallyWeightedRegression(0.5).fit(X, y)
    assert_allclose(model.fitted_values_, y, atol=1e-9)
    assert model.fallbacks_["flat"] == 50
    # across the line the fit is flat
    assert model.predict([[0.5 - 0.2, 1.0 + 0.1]])[0] == pytest.approx(1.5, abs=1e-6)


def test_far_from_zero():
    X, y, _ = problem()
    near = ep.LocallyWeightedRegression(0.4, degree=2).fit(X, y)
    far = ep.LocallyWeightedRegression(0.4, degree=2).fit(X + 1e8, y)
    assert_allclose(far.fitted_values_, near.fitted_values_, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------- properties


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    p=st.integers(1, 3),
    degree=st.integers(0, 2),
    kernel=st.sampled_from(list(KERNELS)),
    span=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_any_data(seed, n, p, degree, kernel, span):
    """Finite, certified, and free of the order of rows, of units and of offsets in y."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 8, size=(n, p)) + rng.choice([0.0, 0.25], size=(n, p)), rng.normal(size=n)
    model = ep.LocallyWeightedRegression(span=span, degree=degree, kernel=kernel).fit(X, y)
    queries = rng.uniform(-1, 9, size=(5, p))
    assert np.isfinite(model.predict(queries)).all()
    assert model.certificate_.holds
    order = rng.permutation(n)
    again = ep.LocallyWeightedRegression(span=span, degree=degree, kernel=kernel).fit(4 * X[order], 2 * y[order] + 1)
    assert_allclose(again.predict(4 * queries), 2 * model.predict(queries) + 1, rtol=1e-5, atol=1e-5)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 2), robust=st.integers(0, 2), by_span=st.booleans())
def test_weights_are_repetitions(seed, p, robust, by_span):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(30, p)), rng.normal(size=30), rng.integers(0, 4, size=30)
    w[:6] += 1
    rule = {"span": 0.6} if by_span else {"bandwidth": 2.0}
    a = ep.LocallyWeightedRegression(robust_iterations=robust, **rule).fit(X, y, w)
    b = ep.LocallyWeightedRegression(robust_iterations=robust, **rule).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(a.predict(X), b.predict(X), rtol=1e-6, atol=1e-7)
    assert_allclose(a.fitted_values_, a.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("p", [1, 3])
def test_same_bits_for_any_number_of_threads(p):
    X, y, w = problem(n=3000, p=p)
    fits = [
        ep.LocallyWeightedRegression(span=0.1, robust_iterations=1, n_jobs=jobs).fit(X, y, w).fitted_values_
        for jobs in (1, 2, 3)
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])


def test_outliers_lose_their_weight():
    X, y, _ = problem(n=200)
    wild = y.copy()
    wild[::20] += 50
    model = ep.LocallyWeightedRegression(span=0.3, robust_iterations=3).fit(X, wild)
    assert np.all(model.robustness_[::20] < 1e-3)
    plain = ep.LocallyWeightedRegression(span=0.3).fit(X, y).fitted_values_
    assert np.abs(model.fitted_values_ - plain).max() < 0.15
    assert model.n_iter_ == model.history_.n_iter == 4
    assert model.history_.change[-1] < 0.05


def test_two_targets_and_float32():
    X, y, w = problem()
    Y = np.column_stack([y, -2 * y])
    model = ep.LocallyWeightedRegression(span=0.4, robust_iterations=1).fit(X, Y, w)
    alone = ep.LocallyWeightedRegression(span=0.4, robust_iterations=1).fit(X, y, w)
    assert_allclose(model.predict(X), np.column_stack([alone.predict(X), -2 * alone.predict(X)]), rtol=1e-12)
    assert model.effective_dof_.shape == (2,)
    single = ep.LocallyWeightedRegression(span=0.4).fit(X.astype(np.float32), y)
    assert single.predict(X.astype(np.float32)).dtype == np.float32
    assert single.fitted_values_.dtype == np.float32


def test_predict_on_dask_and_files(tmp_path):
    import dask.array as da

    X, y, _ = problem(p=2)
    model = ep.LocallyWeightedRegression(span=0.4).fit(X, y)
    assert_allclose(model.predict(da.from_array(X, chunks=(50, 2))).compute(), model.predict(X), rtol=1e-12)
    np.save(tmp_path / "x.npy", X)
    assert_allclose(model.predict(ep.scan(tmp_path / "x.npy")), model.predict(X), rtol=1e-12)
    with pytest.raises(DataError, match="in memory"):
        ep.LocallyWeightedRegression().fit(da.from_array(X, chunks=(50, 2)), da.from_array(y, chunks=50))


def test_a_checkpoint_resumes_robust_iterations(tmp_path):
    X, y, _ = problem()

    class Stop:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            return fitted_estimator is not None and len(fitted_estimator.predict(X)) and fitted_estimator.n_iter_ >= 2

    whole = ep.LocallyWeightedRegression(span=0.4, robust_iterations=4).fit(X, y)
    with ep.config(on_nonconvergence="ignore"):
        half = ep.LocallyWeightedRegression(span=0.4, robust_iterations=4)
        half.set_callbacks(Stop(), ep.Checkpoint(tmp_path / "run.epi")).fit(X, y)
    assert half.n_iter_ == 2
    assert not half.converged_
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi").fit(X, y)
    assert resumed.n_iter_ == resumed.history_.n_iter == 5
    assert np.array_equal(resumed.fitted_values_, whole.fitted_values_)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bandwidth": 1.0, "span": 0.5}, "both given"),
        ({"bandwidth": 0.0}, "bandwidth=0"),
        ({"bandwidth": "lou"}, "did you mean 'loo'"),
        ({"span": 0.0}, "span=0"),
        ({"span": 1.5}, "span=1.5"),
        ({"degree": 3}, "degree=3"),
        ({"kernel": "tricubic"}, "did you mean 'tricube'"),
        ({"metric": [1.0]}, "metric has shape"),
        ({"metric": [-1.0, 1.0]}, "positive definite"),
        ({"metric": [["a", "b"]]}, "metric"),
        ({"delta": 0.1}, "one column"),
        ({"bandwidth": "loo", "candidates": [-1.0]}, "candidates"),
        ({"bandwidth": "loo", "candidates": [1e-9]}, "larger candidates"),
        ({"robust_iterations": -1}, "robust_iterations=-1"),
    ],
)
def test_bad_parameters(parameters, words):
    X, y, _ = problem(p=2)
    with pytest.raises(ParameterError, match=words):
        ep.LocallyWeightedRegression(**parameters).fit(X, y)


def test_other_refusals():
    import scipy.sparse as sp

    X, y, _ = problem(p=2)
    with pytest.raises(DataTypeError, match="parse"):
        ep.LocallyWeightedRegression().fit(sp.csr_array(X), y)
    robust = ep.LocallyWeightedRegression(robust_iterations=1).fit(X, y)
    with pytest.raises(ParameterError, match="robust_iterations=0"):
        robust.confidence_band(X)
    with pytest.raises(ParameterError, match="confidence=2"):
        ep.LocallyWeightedRegression().fit(X, y).confidence_band(X, 2)
    with pytest.raises(ParameterError, match="one column"):
        robust.plot()


def test_plot():
    import matplotlib.pyplot as plt
    import pandas as pd

    X, y, _ = problem()
    axes = ep.LocallyWeightedRegression(span=0.4).fit(pd.DataFrame(X, columns=["age"]), y).plot()
    assert axes.get_xlabel() == "age"
    assert len(axes.collections) == 1
    assert len(ep.LocallyWeightedRegression(0.4, robust_iterations=1, metric=[2.0]).fit(X, y).plot().collections) == 0
    plt.close("all")
