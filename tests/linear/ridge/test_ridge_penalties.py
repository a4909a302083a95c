"""Ridge with any quadratic penalty: closed form, every solver, degrees of freedom, hat matrix, refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge as SklearnRidge

import epicycle as ep
from epicycle import LinearRegression, Ridge
from epicycle.exceptions import NotFittedError, ParameterError
from epicycle.optim._quadratic_penalty import quadratic_penalty

SOLVERS = ["auto", "cholesky", "qr", "newton", "cg", "lbfgs", "bfgs"]


def closed_form(X, y, alpha, D, weight=None):
    """(coef, intercept) with an unpenalised constant, one target at a time."""
    n, p = X.shape
    w = np.ones(n) if weight is None else weight
    A = np.column_stack([X, np.ones(n)])
    P = np.zeros((p + 1, p + 1))
    P[:p, :p] = alpha * D
    x = np.linalg.solve((A * w[:, None]).T @ A + P, (A * w[:, None]).T @ y)
    return x[:p], x[p]


def difference(p):
    second = np.diff(np.eye(p), n=2, axis=0)
    return second.T @ second


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * rng.uniform(0.3, 3, size=6) + 2
    return X, X @ rng.normal(size=6) + rng.normal(size=80), rng.uniform(0.2, 2, size=80)


def kinds(p):
    A = np.random.default_rng(1).normal(size=(p, p))
    factors = np.linspace(0.0, 3.0, p)
    return {
        "factors": ({"penalty_weights": factors}, np.diag(factors)),
        "matrix": ({"penalty_matrix": A @ A.T}, A @ A.T),
        "singular": ({"penalty_matrix": difference(p)}, difference(p)),
        "sparse": ({"penalty_matrix": sp.csc_array(difference(p))}, difference(p)),
        "list": ({"penalty_matrix": np.eye(p).tolist()}, np.eye(p)),
    }


@pytest.mark.parametrize("kind", ["factors", "matrix", "singular", "sparse", "list"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_closed_form(problem, kind, solver):
    X, y, w = problem
    parameters, D = kinds(6)[kind]
    model = Ridge(3.0, solver=solver, tol=1e-13, **parameters).fit(X, y, w)
    coef, intercept = closed_form(X, y, 3.0, D, w)
    assert_allclose(model.coef_, coef, rtol=1e-5, atol=1e-6)
    assert_allclose(model.intercept_, intercept, rtol=1e-5)
    assert model.certificate_.holds
    sparse = Ridge(3.0, solver=solver, tol=1e-13, **parameters).fit(sp.csr_array(X), y, w)
    assert_allclose(sparse.coef_, coef, rtol=1e-5, atol=1e-6)


def test_several_targets_with_alphas_of_their_own(problem):
    X, y, w = problem
    Y = np.column_stack([y, y**2, -y])
    for parameters, D in kinds(6).values():
        for solver in ("auto", "qr"):
            model = Ridge([0.5, 20.0, 0.5], solver=solver, **parameters).fit(X, Y, w)
            for t, alpha in enumerate((0.5, 20.0, 0.5)):
                assert_allclose(model.coef_[t], closed_form(X, Y[:, t], alpha, D, w)[0], rtol=1e-7, atol=1e-8)
            assert model.effective_dof_.shape == (3,)
            for t in range(3):
                H = model.hat_matrix(X, w, target=t)
                assert_allclose(H @ Y[:, t], model.predict(X)[:, t], rtol=1e-8)
                assert_allclose(np.trace(H), model.effective_dof_[t], rtol=1e-9)
                assert_allclose(model.leverage(X, w, target=t), np.diag(H), rtol=1e-9)


def test_a_heavy_smoothness_penalty_leaves_the_line():
    """As alpha grows, w'Dw = |second differences|^2 leaves w linear in its index, and two degrees of freedom."""
    rng = np.random.default_rng(3)
    X = np.eye(30)[rng.integers(0, 30, size=400)]
    y = np.sin(np.arange(30) / 4)[X.argmax(axis=1)] + 0.1 * rng.normal(size=400)
    model = Ridge(1e8, penalty_matrix=difference(30), fit_intercept=False).fit(X, y)
    assert_allclose(np.diff(model.coef_, 2), 0, atol=1e-5)
    assert_allclose(model.effective_dof_, 2, atol=1e-3)
    assert_allclose(model.leverage(X).sum(), model.effective_dof_, rtol=1e-8)
    slope, level = np.polyfit(X.argmax(axis=1), y, 1)
    assert_allclose(model.coef_, level + slope * np.arange(30), atol=1e-3)


def test_degrees_of_freedom_are_those_of_singular_values(problem):
    X, y, _ = problem
    s = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    for alpha in (0.0, 0.1, 10.0, 1e6):
        assert_allclose(Ridge(alpha).fit(X, y).effective_dof_, 1 + (s / (s + alpha)).sum(), rtol=1e-9)
    wide = np.random.default_rng(4).normal(size=(30, 2500))
    s = np.linalg.svd(wide - wide.mean(axis=0), compute_uv=False)[:-1] ** 2
    assert_allclose(Ridge(50.0).fit(wide, y[:30]).effective_dof_, 1 + (s / (s + 50.0)).sum(), rtol=1e-9)
    assert_allclose(Ridge(0.0).fit(X, y).leverage(X), LinearRegression().fit(X, y).leverage(X), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_wide_data_by_singular_values(dtype):
    """Several alphas from one factorisation of a wide matrix, against the kernel form."""
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(40, 900)).astype(dtype), rng.normal(size=(40, 3))
    f = rng.uniform(0.5, 2, size=900)
    model = Ridge([1.0, 30.0, 900.0], penalty_weights=f).fit(X, Y)
    A = X.astype(float) - X.astype(float).mean(axis=0)
    for t, alpha in enumerate((1.0, 30.0, 900.0)):
        K = (A / f) @ A.T
        w = (A / f).T @ np.linalg.solve(K + alpha * np.eye(40), Y[:, t] - Y[:, t].mean())
        assert_allclose(model.coef_[t], w, rtol=1e-6 if dtype == np.float64 else 1e-4, atol=1e-9)
    assert model.certificate_.holds
    assert model.coef_.dtype == dtype
    theirs = SklearnRidge(30.0).fit(X.astype(float), Y[:, 0])
    assert_allclose(Ridge(30.0).fit(X, Y[:, 0]).coef_, theirs.coef_, atol=1e-5 if dtype == np.float32 else 1e-10)


def test_many_sparse_features_with_a_graph():
    """5,500 features in a ring, never made dense: the penalty is the Laplacian plus a little."""
    p = 5500
    X = sp.random_array((3000, p), density=2e-3, rng=np.random.default_rng(6), format="csr")
    y = X @ np.sin(np.arange(p) / 300) + 1
    ring = sp.diags_array([2.0 * np.ones(p)], offsets=[0]) - sp.diags_array([np.ones(p - 1)] * 2, offsets=[-1, 1])
    D = sp.csr_array(ring + 0.1 * sp.eye_array(p))
    model = Ridge(0.5, penalty_matrix=D, tol=1e-14).fit(X, y)
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.holds
    residual = y - model.predict(X)
    assert_allclose(0.5 * (D @ model.coef_), X.T @ residual, atol=1e-4)
    with pytest.raises(AttributeError, match="2000 features"):
        model.effective_dof_  # noqa: B018
    with pytest.raises(NotFittedError, match="5500 features"):
        model.leverage(X)


def test_files_and_batches(problem, tmp_path):
    X, y, _ = problem
    np.save(tmp_path / "d.npy", np.column_stack([X, y]))
    for parameters, _ in kinds(6).values():
        expected = Ridge(2.0, **parameters).fit(X, y)
        assert_allclose(
            Ridge(2.0, **parameters).fit(ep.scan(tmp_path / "d.npy", target=6)).coef_, expected.coef_, rtol=1e-9
        )
        batches = Ridge(2.0, **parameters)
        for rows in np.array_split(np.arange(80), 5):
            batches.partial_fit(X[rows], y[rows])
        assert_allclose(batches.coef_, expected.coef_, rtol=1e-8)
        assert_allclose(batches.effective_dof_, expected.effective_dof_, rtol=1e-9)


def test_summary_says_that_standard_errors_do_not_hold(problem, tmp_path):
    X, y, _ = problem
    model = Ridge(2.0, penalty_weights=np.ones(6)).fit(X, y)
    summary = model.summary()
    assert "naive standard errors do not hold" in summary.note
    assert "with a factor for each feature, alpha=2.0" in summary.note
    assert_allclose(summary.facts["effective degrees of freedom"], model.effective_dof_)
    assert "a matrix D" in Ridge(penalty_matrix=np.eye(6)).fit(X, y).summary().note
    two = Ridge(2.0).fit(X, np.column_stack([y, y])).summary()
    assert list(two.columns) == ["coef[0]", "coef[1]"]
    assert list(two.facts) == ["effective degrees[0]", "effective degrees[1]"]
    model = Ridge(2.0, penalty_matrix=difference(6)).fit(X, y)
    model.save(tmp_path / "m.epi")
    assert ep.load(tmp_path / "m.epi").effective_dof_ == model.effective_dof_


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.integers(1, 12), st.floats(-6, 8), st.booleans())
def test_a_holding_certificate_is_true(seed, n, p, exponent, singular):
    """Against the normal equations in extended precision, refined; for matrices with and without a null space."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(n, p)) * 2.0 ** rng.integers(-4, 5, size=p)
    y = rng.normal(size=n)
    A = rng.integers(-2, 3, size=(max(p - 2, 1) if singular else p + 2, p)).astype(float)
    D, alpha = A.T @ A, 10.0**exponent
    with ep.config(on_nonconvergence="ignore"):
        model = Ridge(alpha, penalty_matrix=D, fit_intercept=False).fit(X, y)
    LD = np.longdouble
    X, y, D = X.astype(LD), y.astype(LD), D.astype(LD)

    def objective(w):
        return ((y - X @ w) ** 2).sum() / 2 + LD(alpha) / 2 * (w @ D @ w)

    best, H = model.coef_.astype(LD), X.T @ X + LD(alpha) * D
    for _ in range(5):
        g = X.T @ (y - X @ best) - LD(alpha) * (D @ best)
        trial = best + np.linalg.pinv(H.astype(float), rcond=1e-13, hermitian=True) @ g.astype(float)
        best = trial if objective(trial) < objective(best) else best
    total = float((y**2).sum()) / 2
    excess = float(objective(model.coef_.astype(LD)) - objective(best)) / total
    if model.certificate_.holds:
        assert excess <= model.certificate_.tolerance
    assert excess <= 1e-6


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"penalty_weights": [1.0, 2.0]}, r"penalty_weights has shape \(2,\)"),
        ({"penalty_weights": [-1.0] * 6}, "penalty_weights: expected finite numbers >= 0"),
        ({"penalty_weights": ["a"] * 6}, "penalty_weights: expected one number"),
        ({"penalty_weights": 3.0}, "penalty_weights=3.0; expected None or an array"),
        ({"penalty_matrix": np.eye(5)}, r"penalty_matrix has shape \(5, 5\)"),
        ({"penalty_matrix": np.triu(np.ones((6, 6)))}, "not symmetric"),
        ({"penalty_matrix": -np.eye(6)}, "negative eigenvalue"),
        ({"penalty_matrix": sp.eye_array(6) * np.nan}, "penalty_matrix: expected finite"),
        ({"penalty_matrix": np.eye(6), "penalty_weights": np.ones(6)}, "expected one of them"),
        ({"alpha": [1.0, 2.0]}, "factors for each feature are penalty_weights"),
        ({"alpha": -1.0}, "alpha"),
    ],
)
def test_bad_penalties(problem, parameters, words):
    X, y, _ = problem
    with pytest.raises(ParameterError, match=words):
        Ridge(**parameters).fit(X, y)


def test_large_matrices_are_checked_without_being_made_dense():
    p = 6000
    with pytest.raises(ParameterError, match="expected a sparse matrix"):
        quadratic_penalty(np.ones(1), p, None, np.broadcast_to(0.0, (p, p)))
    ones = np.ones(p)
    mixed = sp.diags_array([ones, 0.6 * ones[1:], 0.6 * ones[1:]], offsets=[0, 1, -1])
    with pytest.raises(ParameterError, match="negative eigenvalue"):
        quadratic_penalty(np.ones(1), p, None, mixed)
    barely = sp.diags_array([ones, *[0.3 * ones[k:] for k in (1, 1, 2, 2)]], offsets=[0, 1, -1, 2, -2])
    assert quadratic_penalty(np.ones(1), p, None, barely).floor == 0.0  # positive, but no bound is known
