"""scikit-learn's solver names and arguments: the same minimum, and the effect that they have there."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model as reference
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) + 2
    return X, X @ [1, -2, 0, 3, 0.5] + rng.normal(size=60), rng.uniform(0.5, 2, size=60)


@pytest.mark.parametrize("solver", ["svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"])
def test_ridge_solvers(rows, solver):
    X, y, weight = rows
    model = ep.Ridge(2.0, solver=solver).fit(X, y, weight)
    assert_allclose(model.coef_, reference.Ridge(2.0).fit(X, y, weight).coef_, rtol=1e-8)
    assert model.algorithm_ == {"svd": "qr", "lbfgs": "lbfgs"}.get(solver, "cholesky")
    assert model.solver_ == reference.Ridge(2.0, solver=solver, positive=solver == "lbfgs").fit(X, y).solver_ == solver
    assert model.certificate_.holds


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_non_negative_least_squares(rows, alpha, intercept):
    X, y, weight = rows
    model = ep.Ridge(alpha, positive=True, fit_intercept=intercept).fit(X, y, weight)
    root = np.sqrt(weight)
    mean = weight / weight.sum() if intercept else np.zeros(len(y))
    A = np.vstack([root[:, None] * (X - mean @ X), np.sqrt(alpha) * np.eye(5)])
    w = scipy.optimize.nnls(A, np.append(root * (y - mean @ y), np.zeros(5)))[0]
    assert (w == 0).any()
    assert_allclose(model.coef_, w, atol=1e-10)
    assert model.certificate_.holds
    assert model.solver_ == model.algorithm_ == "active set"
    named = ep.Ridge(alpha, positive=True, fit_intercept=intercept, solver="lbfgs").fit(X, y, weight)
    assert (named.solver_, named.algorithm_) == ("lbfgs", "active set")
    assert_array_equal(named.coef_, model.coef_)
    streamed = ep.Ridge(alpha, positive=True, fit_intercept=intercept)
    streamed.partial_fit(X[:30], y[:30], weight[:30]).partial_fit(X[30:], y[30:], weight[30:])
    assert_allclose(streamed.coef_, w, atol=1e-10)
    with pytest.raises(ParameterError, match="no hat matrix"):
        model.leverage(X)


def test_non_negative_with_dependent_columns_and_several_targets(rows):
    X, y, _ = rows
    X = np.column_stack([X, X[:, 0] + X[:, 3], np.ones(len(X))])
    Y = np.column_stack([y, -y])
    model = ep.LinearRegression(positive=True).fit(X, Y)
    expected = reference.LinearRegression(positive=True).fit(X, Y)
    assert (model.coef_ >= 0).all()
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)
    assert model.certificate_.holds
    assert "(positive=True)" in str(model.summary())


def test_the_bound_on_the_excess_of_non_negative_least_squares_sees_a_wrong_answer(rows, monkeypatch):
    from epicycle.linear.least_squares import _nonnegative

    X, y, _ = rows
    best = ep.LinearRegression(positive=True).fit(X, y)
    monkeypatch.setattr(_nonnegative, "minimise_quadratic", lambda H, c: best.coef_ + 0.01)
    with pytest.warns(ConvergenceWarning):
        wrong = ep.LinearRegression(positive=True).fit(X, y)
    assert not wrong.certificate_.holds
    squares = [((y - m.predict(X)) ** 2).sum() for m in (best, wrong)]
    assert wrong.certificate_.value >= (squares[1] - squares[0]) / ((y - y.mean()) ** 2).sum()


def test_positive_takes_no_other_solver(rows):
    with pytest.raises(ParameterError, match="does not support positive fitting"):
        ep.Ridge(positive=True, solver="svd").fit(*rows)


def test_singular_values(rows):
    X, y, _ = rows
    for intercept in (True, False):
        model = ep.LinearRegression(fit_intercept=intercept).fit(X, y)
        assert_allclose(model.singular_, np.linalg.svd(X - intercept * X.mean(axis=0), compute_uv=False))


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "liblinear"},
        {"solver": "liblinear", "intercept_scaling": 5.0, "C": 0.3},
        {"solver": "liblinear", "l1_ratio": 1.0},
        {"solver": "liblinear", "fit_intercept": False, "dual": True},
        {"solver": "saga"},
        {"solver": "saga", "l1_ratio": 0.5},
        {"solver": "sag"},
        {"solver": "newton-cg"},
        {"solver": "newton-cholesky"},
    ],
    ids=str,
)
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array])
def test_logistic_solvers(rows, settings, matrix):
    X, y, weight = rows
    labels = y > y.mean()
    model = ep.LogisticRegression(**settings, tol=1e-12).fit(matrix(X), labels, weight)
    expected = reference.LogisticRegression(**settings, tol=1e-12, max_iter=100_000, random_state=0)
    expected.fit(X, labels, weight)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
    assert_allclose(model.intercept_, expected.intercept_, rtol=1e-4, atol=1e-5)
    assert model.certificate_.holds
    assert model.solver_ == ("proximal-newton" if settings.get("l1_ratio") else "newton")


def test_what_liblinear_does_not_take(rows):
    X, y, _ = rows
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    with pytest.raises(DataError, match="does not support multiclass"):
        ep.LogisticRegression(solver="liblinear").fit(X, classes)
    with pytest.raises(ParameterError, match="not supported for the liblinear solver"):
        ep.LogisticRegression(solver="liblinear", C=np.inf).fit(X, classes > 0)
    with pytest.raises(ParameterError, match="supports only dual=False"):
        ep.LogisticRegression(dual=True).fit(X, classes > 0)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_warm_start_of_logistic_regression(rows, l1_ratio):
    X, y, _ = rows
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = ep.LogisticRegression(l1_ratio=l1_ratio, warm_start=True).fit(X, classes)
    steps, coef = model.n_iter_, model.coef_
    model.fit(X, classes)
    assert model.n_iter_ < steps
    assert_allclose(model.coef_, coef, atol=1e-3)
    model.fit(X[:, :3], classes)  # other features: from the start
    assert model.coef_.shape == (3, 3)


def test_positional_penalty(rows):
    X, y, _ = rows
    model = ep.LogisticRegression("l1", C=0.1).fit(X, y > 0)
    assert_array_equal(model.coef_, ep.LogisticRegression(l1_ratio=1.0, C=0.1).fit(X, y > 0).coef_)


@pytest.mark.parametrize(
    "model",
    [
        ep.LogisticRegression(l1_ratio=1.0, C=0.1),
        ep.LogisticRegressionCV(Cs=2),
        ep.SGDClassifier(random_state=0),
        ep.Perceptron(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sparsify(rows, model, tmp_path):
    X, y, _ = rows
    model.fit(X, y > y.mean())
    dense, scores = model.coef_, model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    assert_array_equal(model.decision_function(X), scores)
    assert_array_equal(model.coef_.toarray(), dense)
    assert_array_equal(model.densify().coef_, dense)


@pytest.mark.parametrize(("solver", "l1_ratios"), [("liblinear", (0.0,)), ("saga", (0.0, 1.0))])
def test_cross_validated_logistic_regression(rows, solver, l1_ratios):
    X, y, _ = rows
    labels = y > y.mean()
    settings = {"Cs": [0.1, 1.0], "l1_ratios": l1_ratios, "solver": solver, "cv": 3, "scoring": "neg_log_loss"}
    settings["use_legacy_attributes"] = True
    model = ep.LogisticRegressionCV(**settings).fit(X, labels)
    expected = reference.LogisticRegressionCV(**settings, tol=1e-10, max_iter=10_000, random_state=0).fit(X, labels)
    assert_allclose(model.coef_, expected.coef_, atol=1e-3)
    assert_allclose(model.intercept_, expected.intercept_, atol=1e-3)
    assert_array_equal(model.C_, expected.C_)
    assert_array_equal(model.l1_ratio_, expected.l1_ratio_)
    for name in ("scores_", "coefs_paths_"):
        (ours,), (theirs,) = getattr(model, name).values(), getattr(expected, name).values()
        assert_allclose(ours, theirs, atol=0.02)  # saga ends early where every coefficient is zero


def test_paths(rows):
    X, y, _ = rows
    alphas, coefs, _, rounds = ep.enet_path(X, y, alphas=7, return_n_iter=True, coef_init=np.ones(5))
    assert alphas.shape == rounds.shape == (7,)
    assert_allclose(coefs, ep.ElasticNet.path(X, y, n_alphas=7).coefs, atol=1e-4)
    grid = ep.LassoCV(alphas=9, selection="random", precompute=False, random_state=0).fit(X, y)
    assert_array_equal(grid.alphas_, ep.LassoCV(n_alphas=9).fit(X, y).alphas_)


def test_quantile_solvers(rows):
    X, y, _ = rows
    best = ep.QuantileRegressor(alpha=0).fit(X, y)
    for name, ran in [("highs", "auto"), ("highs-ds", "simplex"), ("highs-ipm", "interior-point")]:
        model = ep.QuantileRegressor(alpha=0, solver=name, solver_options={"maxiter": 5}).fit(X, y)
        assert model.solver_ == ran
        assert_allclose(model.coef_, best.coef_, atol=1e-8)


def test_warm_start_of_huber(rows):
    X, y, _ = rows
    y = y + 50 * (np.arange(len(y)) < 6)
    model = ep.HuberRegressor(warm_start=True).fit(X, y)
    first, steps = model.coef_, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= 1 < steps  # no step, or one that rounding asks for
    assert_allclose(model.coef_, first, rtol=1e-9)


def test_jitter_of_lars(rows):
    X, y, _ = rows
    first, second = (ep.Lars(jitter=1e-3, random_state=0).fit(X, y).coef_ for _ in range(2))
    assert_array_equal(first, second)
    plain = ep.Lars().fit(X, y).coef_
    assert 0 < np.abs(first - plain).max() < 1e-2


def test_arguments_of_ridge_cv(rows):
    X, y, _ = rows
    plain = ep.RidgeCV([0.1, 1.0]).fit(X, y)
    for mode in ("auto", "svd", "eigen"):
        assert ep.RidgeCV([0.1, 1.0], gcv_mode=mode).fit(X, y).best_score_ == plain.best_score_
    with pytest.warns(FutureWarning, match="not supported for sparse X"):
        ep.RidgeCV([0.1, 1.0], gcv_mode="svd").fit(sp.csr_array(X), y)
    for alphas, words in [
        ((1, -1), r"alphas\[1\] == -1, must be > 0"),
        ((1.0, "1"), r"alphas\[1\] must be an instance"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            ep.RidgeCV(alphas).fit(X, y)
    with pytest.raises(ParameterError, match="number of penalties do not correspond: 3 != 2"):
        ep.Ridge([1, 2, 3]).fit(X, np.column_stack([y, y]))


@pytest.mark.filterwarnings("ignore::epicycle.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("given", [{"max_iter": 0}, {"max_iter": 1}, {"eps": 0.0}])
@pytest.mark.parametrize("name", ["LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC"])
def test_paths_of_few_steps_are_those_of_scikit_learn(rows, name, given):
    X, y, _ = rows
    ours, theirs = getattr(ep, name)(**given).fit(X, y), getattr(reference, name)(**given).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-12)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
    assert ours.n_iter_ == theirs.n_iter_ or "max_iter" not in given
    alphas = [path(X, y, max_iter=0)[0] for path in (ep.lars_path, reference.lars_path)]
    assert_allclose(*alphas, rtol=1e-12)


def test_no_steps_of_huber_leave_its_start(rows):
    X, y, _ = rows
    with pytest.warns(ConvergenceWarning, match="did not converge in 0 iterations"):
        model = ep.HuberRegressor(max_iter=0).fit(X, y)
    assert model.n_iter_ == 0
    assert not model.certificate_.holds


def test_no_steps_of_matching_pursuit_stand_for_the_default(rows):
    X, y, _ = rows
    ours, theirs = (m.OrthogonalMatchingPursuitCV(max_iter=0).fit(X, y) for m in (ep, reference))
    assert ours.n_nonzero_coefs_ == theirs.n_nonzero_coefs_
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10, atol=1e-12)
