"""LinearSpline is ridge regression with the matrix D = diag(0, 0, 1, 1, ...)."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.exceptions import ParameterError


def wave(n=150, seed=0, p=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, size=(n, p))
    return X, np.sin(6 * X).sum(axis=1) + 0.2 * rng.normal(size=n)


def ridge_with_matrix(X, y, knots, alpha, w=None):
    """(H'WH + alpha D)^-1 H'Wy with H = (1, x, max(0, x - a_k)): the normal equations as they stand."""
    hinges = [np.maximum(0, X[:, j] - a) for j, column in enumerate(knots) for a in column]
    H = np.column_stack([np.ones(len(X)), X, *hinges])
    D = np.diag([0.0] * (1 + X.shape[1]) + [alpha] * len(hinges))
    W = np.ones(len(X)) if w is None else w
    G = H.T @ (W[:, None] * H)
    return np.linalg.solve(G + D, H.T @ (W * y)), np.trace(np.linalg.solve(G + D, G))


@pytest.mark.parametrize("alpha", [0.0, 0.01, 10.0])
@pytest.mark.parametrize("p", [1, 3])
def test_equals_ridge_with_the_matrix(alpha, p):
    X, y = wave(p=p)
    w = np.random.default_rng(1).random(len(y))
    model = ep.LinearSpline(6, alpha).fit(X, y, w)
    beta, dof = ridge_with_matrix(X, y, model.knots_, alpha, w)
    assert_allclose(np.append(model.intercept_, model.coef_), beta, rtol=1e-7, atol=1e-8)
    assert model.effective_dof_ == pytest.approx(dof, rel=1e-8)
    assert model.certificate_.holds


def test_limits_of_the_penalty():
    X, y = wave()
    straight = np.polyval(np.polyfit(X[:, 0], y, 1), X[:, 0])
    assert_allclose(ep.LinearSpline(8, 1e12).fit(X, y).predict(X), straight, atol=1e-6)
    few = np.array([[0.0], [1.0], [2.0], [4.0]])
    assert_allclose(ep.LinearSpline(knots=[1.0, 2.0]).fit(few, [0, 1, -1, 5]).predict(few), [0, 1, -1, 5], atol=1e-12)


def test_knots():
    X, y = wave(n=99)
    model = ep.LinearSpline(4).fit(X, y)
    assert_allclose(model.knots_[0], np.quantile(X[:, 0], [0.2, 0.4, 0.6, 0.8], method="inverted_cdf"))
    uniform = ep.LinearSpline(3, knots="uniform").fit(X, y)
    assert_allclose(uniform.knots_[0], np.linspace(X.min(), X.max(), 5)[1:-1])
    X2 = np.hstack([X, 2 * X])
    each = ep.LinearSpline(knots=[[0.5], [0.2, 1.0, 1.5]]).fit(X2, y)
    assert [k.tolist() for k in each.knots_] == [[0.5], [0.2, 1.0, 1.5]]
    assert len(each.coef_) == 2 + 4
    tied = np.repeat([0.0, 1.0, 2.0], 40)[:, None]  # fewer values than knots: distinct ones inside the range are left
    assert ep.LinearSpline(10).fit(tied, tied[:, 0]).knots_[0].tolist() == [1.0]


def test_weights_move_the_quantiles_as_repetitions_do():
    X, y = wave(n=40)
    w = np.random.default_rng(0).integers(0, 5, size=40)
    a, b = ep.LinearSpline(5, 0.1).fit(X, y, w), ep.LinearSpline(5, 0.1).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert np.array_equal(a.knots_[0], b.knots_[0])
    assert_allclose(a.predict(X), b.predict(X), rtol=1e-8, atol=1e-9)


def test_slopes():
    x = np.linspace(-2, 2, 81)[:, None]
    model = ep.LinearSpline(knots=[-1.0, 1.0]).fit(x, np.abs(x[:, 0] + 1) - np.abs(x[:, 0] - 1))
    assert_allclose(model.coef_, [0, 2, -2], atol=1e-9)
    assert_allclose(model.derivative([[-1.5], [-1.0], [0.0], [1.0], [9.0]]), [0, 2, 2, 0, 0], atol=1e-9)
    assert model.summary().facts["roughness"] == pytest.approx(8.0)


def test_leave_one_out_chooses_alpha():
    X, y = wave(n=60)
    alphas = [1e-6, 1e-3, 1e-1, 1e3]
    model = ep.LinearSpline(12, alphas).fit(X, y)
    for alpha, error in zip(alphas, model.loo_errors_, strict=True):
        missed = []
        for i in range(len(y)):
            kept = np.arange(len(y)) != i
            fit = ep.LinearSpline(knots=model.knots_, alpha=alpha).fit(X[kept], y[kept])
            missed.append(float(y[i] - fit.predict(X[[i]])[0]))
        assert error == pytest.approx(np.mean(np.square(missed)), rel=1e-7)
    assert model.alpha_ == alphas[int(np.argmin(model.loo_errors_))]
    free = ep.LinearSpline(12, "loo").fit(X, y)
    assert free.loo_errors_.min() <= model.loo_errors_.min() * 1.05


def test_coverage_of_the_intervals():
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 40)[:, None]
    truth = np.array([1.0, 2.0, -3.0])  # intercept, slope, change of slope at one half
    signal = truth[0] + truth[1] * x[:, 0] + truth[2] * np.maximum(0, x[:, 0] - 0.5)
    inside = np.zeros(3)
    for _ in range(400):
        low, high = list(
            ep.LinearSpline(knots=[0.5]).fit(x, signal + rng.normal(size=40)).summary(0.9).columns.values()
        )[-2:]
        inside += (low <= truth) & (truth <= high)
    assert_allclose(inside / 400, 0.9, atol=0.045)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    knots=st.integers(1, 12),
    scale=st.floats(1e-3, 1e3),
    alpha=st.sampled_from([0.0, 1e-3, 5.0]),
)
def test_any_data(seed, n, knots, scale, alpha):
    """Whatever the data: finite, continuous, certified, and the same for other units of y."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 6, size=(n, 2)) * scale, rng.normal(size=n)
    model = ep.LinearSpline(knots, alpha).fit(X, y)
    assert model.certificate_.holds
    assert np.isfinite(model.predict(X)).all()
    assert model.effective_dof_ <= n + 1e-9
    assert_allclose(ep.LinearSpline(knots, alpha).fit(X, 8 * y + 1).predict(X), 8 * model.predict(X) + 1, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"knots": [[0.1], [0.2]]}, "2 arrays"),
        ({"knots": [0.5, np.nan]}, "finite"),
        ({"knots": [0.5, 0.5]}, "distinct"),
        ({"knots": "quantiles"}, "did you mean 'quantile'"),
        ({"n_knots": 0}, "n_knots=0"),
        ({"alpha": [-1.0]}, "alpha"),
    ],
)
def test_bad_parameters(parameters, words):
    X, y = wave()
    with pytest.raises(ParameterError, match=words):
        ep.LinearSpline(**parameters).fit(X, y)


def test_plot():
    import matplotlib.pyplot as plt

    X, y = wave()
    axes = ep.LinearSpline(5).fit(X, y).plot(X, y)
    assert len(axes.lines) == 2 + 5
    plt.close("all")
