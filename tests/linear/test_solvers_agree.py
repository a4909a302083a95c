"""Every solver by name reaches the same optimum; what does not converge says so."""

import warnings

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

import epicycle as ep
from epicycle import LinearRegression, LogisticRegression, Ridge
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, ParameterError
from epicycle.optim import SOLVERS

#: Steps that suit parameters of the order of one; the rest is left at the defaults.
OPTIONS = {"adadelta": {"step": 10.0, "batch_size": 16}, "adagrad": {"step": 0.3, "batch_size": 16}}
every_solver = pytest.mark.parametrize("solver", SOLVERS)


def configured(model, solver, tol=1e-12):
    return model.set_params(solver=solver, solver_options=OPTIONS.get(solver), tol=tol, max_iter=5000, random_state=3)


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 4)) + [0, 5, -3, 1]
    return X, X @ rng.normal(size=(4, 2)) + rng.normal(size=(120, 2)), rng.uniform(0.2, 2, size=120)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@every_solver
def test_linear_regression(regression, solver):
    X, Y, weight = regression
    root = np.sqrt(weight)[:, None]
    expected = np.linalg.lstsq(root * np.column_stack([X, np.ones(120)]), root * Y, rcond=None)[0]
    model = configured(LinearRegression(), solver).fit(X, Y, weight)
    assert model.converged_
    assert_allclose(model.coef_, expected[:-1].T, rtol=0, atol=2e-5)
    assert_allclose(model.intercept_, expected[-1], rtol=0, atol=1e-4)


@every_solver
def test_ridge_with_a_penalty_for_each_target(regression, solver):
    X, Y, _ = regression
    model = configured(Ridge([3.0, 40.0]), solver).fit(X, Y)
    assert model.converged_
    A, B = X - X.mean(0), Y - Y.mean(0)
    for t, alpha in enumerate([3.0, 40.0]):
        assert_allclose(model.coef_[t], np.linalg.solve(A.T @ A + alpha * np.eye(4), A.T @ B[:, t]), rtol=0, atol=2e-5)
    assert_allclose(model.intercept_, Y.mean(0) - model.coef_ @ X.mean(0), atol=1e-12)


@every_solver
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression(iris, solver, n_classes, intercept):
    X, y = iris
    if n_classes == 2:
        X, y = X[y > 0], y[y > 0]
    model = configured(LogisticRegression(C=0.5, fit_intercept=intercept), solver, tol=1e-10).fit(X, y)
    assert model.converged_
    W, b = optimum(X, y, 2.0, intercept)
    assert_allclose(model.coef_, W, rtol=0, atol=1e-4)
    assert_allclose(model.intercept_, b, rtol=0, atol=1e-4)


def optimum(X, y, penalty, intercept):
    """Softmax regression by Newton's method with a numerical Hessian, from scratch."""
    Y = (y[:, None] == np.unique(y)).astype(float)
    K, (n, p) = Y.shape[1], X.shape
    A = np.column_stack([X, np.ones(n) if intercept else np.zeros(n)])
    two = K == 2
    rows = 1 if two else K

    def gradient(theta):
        W = theta.reshape(rows, p + 1)
        Z = np.column_stack([np.zeros(n), A @ W[0]]) if two else A @ W.T
        P = np.exp(Z - Z.max(1, keepdims=True))
        R = P / P.sum(1, keepdims=True) - Y
        G = (R[:, 1:] if two else R).T @ A + penalty * np.column_stack([W[:, :-1], 1e-9 * W[:, -1:]])
        return G.ravel()

    theta = np.zeros(rows * (p + 1))
    for _ in range(30):
        g, h = gradient(theta), 1e-6
        H = np.array([(gradient(theta + h * e) - gradient(theta - h * e)) / (2 * h) for e in np.eye(len(theta))])
        if not intercept:
            last = np.arange(p, len(theta), p + 1)
            H[last, last] = 1.0
        theta = theta - np.linalg.solve((H + H.T) / 2, g)
    W = theta.reshape(rows, p + 1)
    return W[:, :-1], W[:, -1] - (0 if two else W[:, -1].mean())


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "sgd", "cg"])
def test_intercepts_of_softmax_sum_to_zero(iris, solver):
    model = LogisticRegression(C=2.0, solver=solver, random_state=0, tol=1e-6).fit(*iris)
    assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-6)
    assert_allclose(model.intercept_.sum(), 0, atol=1e-6)


# ------------------------------------------------------------------------------------------------ what goes wrong

ESTIMATORS = [LinearRegression(), Ridge(), LogisticRegression()]
each = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: type(m).__name__)


def problem(model):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 3)) * [1, 5, 20]
    target = X @ [1.0, -0.4, 0.1] + 3 * rng.normal(size=150)
    return X, (target > 0).astype(int) if isinstance(model, LogisticRegression) else target


@each
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("gd", {"step": 1e6}),
        ("sgd", {"step": 1e6, "schedule": "constant"}),
        ("momentum", {"step": 1e6, "schedule": "constant", "variance_reduction": False}),
    ],
)
def test_a_diverging_step_is_called_so(model, solver, options):
    chosen = type(model)(solver=solver, solver_options=options, max_iter=500, random_state=0)
    X, y = problem(model)
    with pytest.warns(ConvergenceWarning, match=r"diverged[\s\S]*step") as caught:
        chosen.fit(X, y)
    assert len(caught) == 1
    assert not chosen.converged_
    assert not chosen.certificate_.holds
    assert np.isfinite(chosen.coef_).all()
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError, match="diverged"):
        chosen.fit(X, y)


@each
@pytest.mark.parametrize("solver", ["gd", "cg", "sgd", "adam", "gd-ladder"])
def test_too_few_iterations(model, solver):
    X, y = problem(model)
    chosen = type(model)(solver=solver, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 ") as caught:
        chosen.fit(X, y)
    assert len(caught) == 1
    assert type(model).__name__ in str(caught[0].message)
    assert caught[0].filename == __file__
    assert (chosen.converged_, chosen.certificate_.holds, chosen.n_iter_) == (False, False, 1)
    with ep.config(on_nonconvergence="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        ignored = type(model)(solver=solver, max_iter=1, random_state=0).fit(X, y)
    assert not ignored.converged_
    assert np.array_equal(ignored.coef_, chosen.coef_)
    unfitted = type(model)(solver=solver, max_iter=1, random_state=0)
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError, match="max_iter=1 "):
        unfitted.fit(X, y)
    assert not hasattr(unfitted, "coef_")


@each
def test_history_goes_with_the_fit(model):
    X, y = problem(model)
    fit = type(model)(solver="bfgs").fit(X, y)
    assert fit.history_.n_iter == fit.n_iter_ > 1
    assert (np.diff(fit.history_.objective) <= 1e-9 * np.abs(fit.history_.objective[:-1])).all()
    assert np.isfinite(fit.history_["gradient_norm"]).all()
    assert (np.diff(fit.history_.seconds) >= 0).all()


@each
@pytest.mark.parametrize("solver", [name for name, info in SOLVERS.items() if info.stochastic])
def test_the_seed_decides_the_bits(model, solver):
    X, y = problem(model)
    options = {"batch_size": 16}
    with ep.config(on_nonconvergence="ignore"):
        fits = [
            type(model)(solver=solver, solver_options=options, max_iter=3, random_state=s).fit(X, y) for s in (1, 1, 2)
        ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert not np.array_equal(fits[0].coef_, fits[2].coef_)


@pytest.mark.parametrize("solver", [name for name, info in SOLVERS.items() if info.stochastic])
def test_stochastic_solvers_run_over_partitions(regression, solver):
    X, Y, _ = regression
    exact = Ridge().fit(X, Y)
    parts = [da.from_array(a, chunks=(50, a.shape[1])) for a in (X, Y)]
    fits = [configured(Ridge(), solver, tol=1e-9).fit(*parts) for _ in range(2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].certificate_.holds
    assert_allclose(fits[0].coef_, exact.coef_, atol=1e-3)


@each
def test_options_go_to_the_named_solver(model):
    X, y = problem(model)
    with pytest.raises(ParameterError, match=r"'newton' has no option 'step'"):
        type(model)(solver="newton", solver_options={"step": 1.0}).fit(X, y)
    with pytest.raises(ParameterError, match="solver_options"):
        type(model)(solver_options={"step": 1.0}).fit(X, y)
