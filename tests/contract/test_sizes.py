"""Arguments that say how much to allocate, or how often to repeat, are refused before the work, or the work ends."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.exceptions import DataError, MemoryBudgetError, ParameterError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return X, X @ [1.0, -0.5] + rng.normal(size=30)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (ep.LinearSpline(n_knots=10**9), "n_knots"),
        (ep.LinearSpline(n_knots=10**9, knots="uniform"), "n_knots"),
        (ep.HingeFeatures(n_knots=10**9), "n_knots"),
        (ep.FourierFeatures(n_harmonics=10**9), "n_harmonics"),
        (ep.LassoCV(n_alphas=10**9), "n_alphas"),
        (ep.ElasticNetCV(n_alphas=10**9), "n_alphas"),
        (ep.LocallyWeightedRegression(robust_iterations=2**63), "robust_iterations"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_absurd_sizes_are_refused_by_name(rows, model, name):
    with pytest.raises(ParameterError, match=f"{type(model).__name__}: {name}="):
        model.fit(*rows)


def test_absurd_sizes_of_functions_are_refused_by_name(rows):
    with pytest.raises(ParameterError, match="n_alphas"):
        ep.lasso_path(*rows, n_alphas=10**9)
    with pytest.raises(ParameterError, match="Cs"):
        ep.LogisticRegressionCV(Cs=10**9).fit(rows[0], rows[1] > 0)


def test_memory_is_asked_for_before_it_is_used(rows):
    X, y = rows
    with ep.config(memory_limit=2**26):
        with pytest.raises(MemoryBudgetError, match="a spline with 20002 coefficients"):
            ep.LinearSpline(n_knots=10_000, knots="uniform").fit(X, y)
        with pytest.raises(MemoryBudgetError, match="functions of 30 rows"):
            ep.FourierFeatures(n_harmonics=100_000).fit(X).transform(X)


@pytest.mark.parametrize("model", [ep.Ridge(), ep.SVR(), ep.GaussianProcessRegressor(), ep.QuantileRegressor()])
def test_weights_and_targets_whose_squares_overflow_are_refused_by_name(rows, model):
    X, y = rows
    with pytest.raises(DataError, match=r"sample_weight: 1e\+200 in row 0"):
        model.fit(X, y, sample_weight=np.full(30, 1e200))
    with pytest.raises(DataError, match=r"y: .*weighted squares overflow"):
        model.fit(X, np.full(30, 1e145), sample_weight=np.full(30, 1e20))
    with pytest.raises(DataError, match=r"y: .*too large for float32"):
        model.fit(X.astype(np.float32), np.full(30, 1e60))


def test_sizes_that_only_trees_and_neighbours_take(rows):
    X, y = rows
    tree = ep.DecisionTreeRegressor().fit(X.astype(np.float32), 1e100 * y, sample_weight=np.full(30, 1e20))
    assert_allclose(tree.predict(X.astype(np.float32)), 1e100 * y, rtol=1e-6)
    for model in (ep.DecisionTreeRegressor(), ep.DecisionTreeClassifier()):  # gains are squares of weighted sums
        with pytest.raises(DataError, match="sample_weight"):
            model.fit(X, y > 0, sample_weight=np.full(30, 1e200))
    near = ep.KNeighborsRegressor(1).fit(X.astype(np.float32), 1e100 * y)
    assert_allclose(near.predict(X.astype(np.float32)), 1e100 * y, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        ep.AdaBoostClassifier(learning_rate=1000.0),
        ep.GradientBoostingClassifier(learning_rate=1e-300, n_estimators=3),
        ep.SGDClassifier(learning_rate="invscaling", eta0=1.0, power_t=1000.0),
        ep.KNeighborsClassifier(p=1e-12),
        ep.KernelLogisticRegression(C=1e300),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:Mind that for 0 < p < 1")
def test_parameters_at_the_ends_of_their_domains_give_finite_answers(rows, model):
    X = rows[0]
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X, rows[1] > 0)
    assert np.isfinite(model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)).all()


def test_samples_and_features_without_number_are_refused(rows):
    X, y = rows
    with pytest.raises(MemoryBudgetError, match="max_samples"):
        ep.RandomForestRegressor(max_samples=2**62).fit(X, y)
    with pytest.raises(MemoryBudgetError, match="n_components"):
        ep.RandomFourierFeatures(n_components=2**62).fit(X)
    with pytest.raises(ParameterError, match="n_circles"):
        ep.EpicycleRegression(n_circles=2**62).fit(X[:, :1], y)


@pytest.mark.serial
def test_a_thousand_passes_of_the_kernel_perceptron_are_linear_work(rows):
    X, y = rows
    model = ep.KernelPerceptron(kernel="linear", max_iter=1500, tol=1e-12)
    began = time.process_time()
    with ep.config(on_nonconvergence="ignore"):
        model.fit(X, y > 0)  # not separable: mistakes in every pass
    assert model.n_iter_ == 1500
    assert time.process_time() - began < 5  # 13 s when every pass copied the mistakes of those before


def test_penalties_below_all_rounding_end():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    with ep.config(on_nonconvergence="ignore"):
        model = ep.LassoCV(eps=1e-300, n_alphas=20, cv=2).fit(X, y)
        path = ep.lasso_path(X, y, eps=1e-300, n_alphas=20, fit_intercept=True)
    assert np.isfinite(model.mse_path_).all()
    centred = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    assert_allclose(path.coefs[:, -1], centred, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1e155, 1e300])
def test_huber_with_an_endless_epsilon_is_least_squares(rows, epsilon):
    X, y = rows
    model = ep.HuberRegressor(epsilon=epsilon, alpha=0.0).fit(X, y)
    least = ep.LinearRegression().fit(X, y)
    assert model.certificate_.holds
    assert model.n_outliers_ == 0
    assert_allclose(model.coef_, least.coef_, rtol=1e-9)
    assert_allclose(model.scale_, np.sqrt(np.mean((y - least.predict(X)) ** 2)), rtol=1e-9)


def test_robust_iterations_end_where_nothing_changes(rows):
    X, y = rows
    model = ep.LocallyWeightedRegression(span=0.8, robust_iterations=10_000).fit(X[:, :1], y)
    assert model.history_.n_iter < 2_000
    again = ep.LocallyWeightedRegression(span=0.8, robust_iterations=model.history_.n_iter + 5).fit(X[:, :1], y)
    assert_allclose(again.predict(X[:, :1]), model.predict(X[:, :1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ep.SVR(), "X: its variance is too large for gamma='scale'"),
        (ep.NuSVC(nu=0.3), "X: its variance is too large for gamma='scale'"),
        (ep.BackwardSelection(ep.LinearRegression()), "X: sums of squares of its columns"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_whose_squares_overflow_are_refused_by_name(rows, model, words):
    X, y = rows
    labels = (y > 0).astype(int) if isinstance(model, ep.NuSVC) else y
    with pytest.raises(DataError, match=words):
        model.fit(1e200 * X, labels)


def test_distances_with_a_huge_power_are_those_of_the_largest_difference(rows):
    X, _ = rows
    found, largest = (ep.NearestNeighbors(n_neighbors=3, p=p).fit(X).kneighbors(X)[0] for p in (1e300, np.inf))
    assert_allclose(found, largest, rtol=1e-12)


def test_an_empty_sparse_matrix_is_boosted_to_the_larger_class(rows):
    labels = (rows[1] > 0).astype(int)
    model = ep.AdaBoostClassifier().fit(sp.csr_matrix((30, 2)), labels)
    assert set(model.predict(rows[0])) == {np.bincount(labels).argmax()}
