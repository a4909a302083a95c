"""Short programs in the manner of scikit-learn's user guide and examples, run with its classes and with ours.

Each takes a namespace `m` of model classes and returns a score, or several. All else (data, splits, pipelines,
searches, metrics, inspection) is scikit-learn's own in both runs. The tolerance is how far the scores of the two runs
may be apart: little where the answers are the same optimum, more where both draw random numbers of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets, inspection, metrics, model_selection as ms, preprocessing as prep
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SelectKBest, SequentialFeatureSelector, f_classif
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.manifold import Isomap
from sklearn.multiclass import OneVsOneClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

Snippet = Callable[[Any], Any]
SNIPPETS: dict[str, tuple[Snippet, float]] = {}


def snippet(tolerance: float) -> Callable[[Snippet], Snippet]:
    """Enter a function into the list, with how far its scores may be apart."""

    def enter(function: Snippet) -> Snippet:
        SNIPPETS[function.__name__] = (function, tolerance)
        return function

    return enter


def _halves(X: Any, y: Any, **options: Any) -> Any:
    return ms.train_test_split(X, y, random_state=0, **options)


IRIS = datasets.load_iris(return_X_y=True)
CANCER = datasets.load_breast_cancer(return_X_y=True)
DIABETES = datasets.load_diabetes(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
MOONS = datasets.make_moons(200, noise=0.25, random_state=0)
SENTENCES = [
    f"{who} {what} {when}"
    for who in ("the team", "our striker", "the goalkeeper", "the bank", "the fund", "the central bank")
    for what in ("won", "lost", "waited", "spoke", "rose", "fell")
    for when in ("today", "on monday", "after a long week")
]
TOPICS = np.array([int("bank" in words or "fund" in words) for words in SENTENCES])


# ---------------------------------------------------------------------------------------------- linear models


@snippet(1e-6)
def least_squares_on_one_column(m):
    X, y = DIABETES
    model = m.LinearRegression().fit(X[:-20, 2:3], y[:-20])
    predicted = model.predict(X[-20:, 2:3])
    return model.coef_[0], metrics.mean_squared_error(y[-20:], predicted), metrics.r2_score(y[-20:], predicted)


@snippet(1e-6)
def ridge_coefficients_along_alphas(m):
    X = 1.0 / (np.arange(1, 11) + np.arange(0, 10)[:, None])  # Hilbert's matrix
    coefs = [m.Ridge(alpha=alpha, fit_intercept=False).fit(X, np.ones(10)).coef_ for alpha in np.logspace(-4, -1, 8)]
    return np.linalg.norm(coefs, axis=1)


@snippet(1e-6)
def ridge_by_efficient_leave_one_out(m):
    model = m.RidgeCV(alphas=np.logspace(-4, 3, 15)).fit(*DIABETES)
    return np.log10(model.alpha_), model.score(*DIABETES)


@snippet(1e-3)
def lasso_and_elastic_net_on_sparse_signals(m):
    rng = np.random.RandomState(42)
    X = rng.randn(60, 100)
    signal = np.zeros(100)
    signal[:10] = (-1) ** np.arange(10) * np.exp(-np.arange(10) / 10)
    y = X @ signal + 0.01 * rng.randn(60)
    half = 30
    scores = []
    for model in (m.Lasso(alpha=0.1), m.ElasticNet(alpha=0.1, l1_ratio=0.7)):
        scores.append(metrics.r2_score(y[half:], model.fit(X[:half], y[:half]).predict(X[half:])))
    return scores


@snippet(1e-3)
def lasso_path_to_plot(m):
    X, y = DIABETES
    alphas, coefs, gaps = m.lasso_path(X / X.std(axis=0), y, eps=5e-3, n_alphas=20)
    assert coefs.shape == (10, 20)
    assert len(gaps) == 20
    return np.log10(alphas[[0, -1]]), np.count_nonzero(coefs[:, 10]), coefs[:, -1] / 1000


@snippet(1e-3)
def lasso_cross_validated_in_a_pipeline(m):
    model = make_pipeline(prep.StandardScaler(), m.LassoCV(cv=5, alphas=30)).fit(*DIABETES)
    return np.log10(model[-1].alpha_), model.score(*DIABETES), model[-1].mse_path_.mean() / 1e4


@snippet(1e-3)
def elastic_net_with_two_grids(m):
    model = m.ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=20, cv=3).fit(*DIABETES)
    return model.l1_ratio_, np.log10(model.alpha_)


@snippet(1e-6)
def least_angle_regression_order(m):
    X, y = DIABETES
    model = m.Lars(n_nonzero_coefs=5).fit(X, y)
    return [*model.active_, model.score(X, y)]


@snippet(1e-3)
def logistic_regression_probabilities(m):
    X, y = IRIS
    model = m.LogisticRegression(C=1e5).fit(X[:, :2], y)
    return model.score(X[:, :2], y), metrics.log_loss(y, model.predict_proba(X[:, :2]))


@snippet(0.02)
def sparse_logistic_regression_by_saga(m):
    X, y = datasets.load_digits(n_class=3, return_X_y=True)
    X_train, X_test, y_train, y_test = _halves(prep.scale(X), y, test_size=100)
    model = m.LogisticRegression(C=0.05, l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=500).fit(X_train, y_train)
    return np.mean(model.coef_ == 0), model.score(X_test, y_test)


@snippet(0.02)
def logistic_path_by_cross_validation(m):
    model = make_pipeline(prep.StandardScaler(), m.LogisticRegressionCV(Cs=5, cv=3, max_iter=500)).fit(*CANCER)
    return model.score(*CANCER)


@snippet(0.02)
def robust_line_with_outliers(m):
    X, y = datasets.make_regression(n_samples=80, n_features=1, noise=4.0, random_state=0, bias=100.0)
    X[:4], y[:4] = 10, -400
    huber = m.HuberRegressor(alpha=0.0, epsilon=1.35, max_iter=500).fit(X, y)
    return huber.coef_ / 100, huber.intercept_ / 100, huber.outliers_.sum()


@snippet(1e-3)
def quantiles_of_a_spreading_cloud(m):
    rng = np.random.RandomState(0)
    x = np.linspace(0, 10, 100)
    y = 10 + 0.5 * x + rng.normal(size=100) * (0.5 + 0.5 * x)
    lines = [m.QuantileRegressor(quantile=q, alpha=0).fit(x[:, None], y) for q in (0.05, 0.5, 0.95)]
    return [np.mean(y <= line.predict(x[:, None]) + 1e-6) for line in lines], lines[1].predict([[5.0]])


@snippet(0.05)
def stochastic_descent_with_early_stopping(m):
    X_train, X_test, y_train, y_test = _halves(*CANCER)
    model = make_pipeline(prep.StandardScaler(), m.SGDClassifier(loss="log_loss", early_stopping=True, random_state=0))
    return model.fit(X_train, y_train).score(X_test, y_test)


@snippet(0.06)
def learning_from_batches_with_partial_fit(m):
    X_train, X_test, y_train, y_test = _halves(prep.scale(CANCER[0]), CANCER[1])
    model = m.SGDClassifier(random_state=0)
    for start in range(0, len(X_train), 50):
        model.partial_fit(X_train[start : start + 50], y_train[start : start + 50], classes=[0, 1])
    return model.score(X_test, y_test)


@snippet(0.05)
def perceptron_on_digits(m):
    X, y = datasets.load_digits(n_class=4, return_X_y=True)
    return ms.cross_val_score(m.Perceptron(random_state=0), X / 16, y, cv=3).mean()


@snippet(1e-6)
def polynomial_features_and_ridge(m):
    x = np.linspace(0, 10, 40)
    model = make_pipeline(prep.PolynomialFeatures(3), prep.StandardScaler(), m.Ridge(alpha=1e-3))
    return model.fit(x[:, None], x * np.sin(x)).score(x[:, None], x * np.sin(x))


@snippet(1e-6)
def target_on_a_logarithmic_scale(m):
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 3, size=(100, 2))
    y = np.exp(X @ [1.0, 0.5] + 0.1 * rng.normal(size=100))
    model = TransformedTargetRegressor(m.LinearRegression(), func=np.log1p, inverse_func=np.expm1).fit(X, y)
    return model.score(X, y)


# ---------------------------------------------------------------------------------------------- support vectors


@snippet(1e-3)
def support_vectors_of_two_clouds(m):
    X, y = datasets.make_blobs(n_samples=40, centers=2, random_state=6)
    model = m.SVC(kernel="linear", C=1000).fit(X, y)
    return len(model.support_vectors_), model.coef_[0], model.intercept_


@snippet(0.011)
def grid_search_over_kernels(m):
    X_train, X_test, y_train, y_test = _halves(*IRIS)
    grid = [{"svc__kernel": ["linear"], "svc__C": [1, 10]}, {"svc__kernel": ["rbf"], "svc__gamma": [0.01, 0.1]}]
    search = ms.GridSearchCV(Pipeline([("scale", prep.StandardScaler()), ("svc", m.SVC())]), grid, cv=3)
    search.fit(X_train, y_train)
    return search.best_score_, search.score(X_test, y_test), len(search.cv_results_["params"])


@snippet(0.05)
def random_search_over_distributions(m):
    import scipy.stats

    space = {"C": scipy.stats.loguniform(0.1, 100), "gamma": scipy.stats.loguniform(1e-2, 1)}
    search = ms.RandomizedSearchCV(m.SVC(), space, n_iter=6, random_state=0, cv=3).fit(*MOONS)
    return search.best_score_


@snippet(1e-3)
def support_vector_regression_of_a_sine(m):
    rng = np.random.RandomState(0)
    X = np.sort(5 * rng.rand(40, 1), axis=0)
    y = np.sin(X).ravel()
    y[::5] += 3 * (0.5 - rng.rand(8))
    models = [m.SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1), m.NuSVR(C=100, gamma=0.1, nu=0.5)]
    return [model.fit(X, y).score(X, y) for model in models]


@snippet(0.02)
def novelty_by_one_class(m):
    rng = np.random.RandomState(0)
    train = np.vstack([0.3 * rng.randn(60, 2) + 2, 0.3 * rng.randn(60, 2) - 2])
    model = m.OneClassSVM(nu=0.1, gamma=0.1).fit(train)
    outside = rng.uniform(-4, 4, size=(50, 2))
    return np.mean(model.predict(train) == -1), np.mean(model.predict(outside) == -1)


@snippet(1e-6)
def precomputed_kernel_and_cross_validation(m):
    X, y = IRIS
    gram = metrics.pairwise.rbf_kernel(X, gamma=0.2)
    return ms.cross_val_score(m.SVC(kernel="precomputed"), gram, y, cv=5).mean()


@snippet(0.03)
def linear_svc_with_unbalanced_weights(m):
    X, y = datasets.make_blobs(n_samples=[300, 30], centers=[[0, 0], [2, 2]], cluster_std=[1.5, 0.5], random_state=0)
    plain, weighted = m.LinearSVC(random_state=0).fit(X, y), m.LinearSVC(class_weight={1: 10}, random_state=0).fit(X, y)
    return metrics.recall_score(y, plain.predict(X)), metrics.recall_score(y, weighted.predict(X))


# ---------------------------------------------------------------------------------------------- text


@snippet(0.02)
def text_classification_with_sparse_columns(m):
    model = make_pipeline(TfidfVectorizer(), m.LogisticRegression(C=10))
    return ms.cross_val_score(model, SENTENCES, TOPICS, cv=4).mean()


@snippet(0.03)
def text_search_over_vectoriser_and_model(m):
    model = Pipeline([("words", CountVectorizer()), ("svm", m.LinearSVC(random_state=0))])
    grid = {"words__ngram_range": [(1, 1), (1, 2)], "svm__C": [0.1, 1.0]}
    return ms.GridSearchCV(model, grid, cv=3).fit(SENTENCES, TOPICS).best_score_


@snippet(0.05)
def text_out_of_core_by_hashing(m):
    hashing = HashingVectorizer(n_features=2**10)
    model = m.SGDClassifier(random_state=0, max_iter=50)
    order = np.random.RandomState(0).permutation(len(SENTENCES))
    for _ in range(5):
        for part in np.array_split(order, 6):
            model.partial_fit(hashing.transform([SENTENCES[i] for i in part]), TOPICS[part], classes=[0, 1])
    return model.score(hashing.transform(SENTENCES), TOPICS)


# ---------------------------------------------------------------------------------------------- neighbours


@snippet(1e-6)
def neighbours_by_weights_and_cross_validation(m):
    model = make_pipeline(prep.StandardScaler(), m.KNeighborsClassifier())
    grid = {"kneighborsclassifier__n_neighbors": [1, 5, 15], "kneighborsclassifier__weights": ["uniform", "distance"]}
    search = ms.GridSearchCV(model, grid, cv=5).fit(*WINE)
    return search.best_score_, search.cv_results_["mean_test_score"]


@snippet(1e-6)
def neighbour_regression_with_several_targets(m):
    X = datasets.load_digits(n_class=3).data[:200]
    X = X + 1e-3 * np.random.RandomState(0).normal(size=X.shape)  # no two distances are equal
    model = m.KNeighborsRegressor(5).fit(X[:150, :32], X[:150, 32:])  # the lower halves of pictures from the upper
    return metrics.mean_squared_error(X[150:, 32:], model.predict(X[150:, :32]))


@snippet(1e-6)
def neighbour_graph_in_an_embedding(m):
    X = datasets.make_swiss_roll(150, random_state=0)[0]
    chain = make_pipeline(
        m.KNeighborsTransformer(n_neighbors=8, mode="distance"), Isomap(n_neighbors=7, metric="precomputed")
    )
    graph = m.NearestNeighbors(n_neighbors=3).fit(X).kneighbors_graph(X)
    return np.abs(chain.fit_transform(X)).mean(), graph.sum()


@snippet(1e-6)
def nearest_centroids_that_shrink(m):
    X, y = IRIS
    return [m.NearestCentroid(shrink_threshold=t).fit(X[:, :2], y).score(X[:, :2], y) for t in (None, 0.1, 1.0)]


@snippet(1e-6)
def neighbours_within_a_radius(m):
    X_train, X_test, y_train, y_test = _halves(*WINE)
    scaler = prep.StandardScaler().fit(X_train)
    model = m.RadiusNeighborsClassifier(radius=6.0).fit(scaler.transform(X_train), y_train)
    return model.score(scaler.transform(X_test), y_test)


# ---------------------------------------------------------------------------------------------- trees and ensembles


@snippet(0.03)
def decision_tree_drawn_and_printed(m):
    from sklearn import tree

    X, y = IRIS
    model = m.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    drawn = tree.plot_tree(model, filled=True)
    assert "class: 0" in tree.export_text(model)
    assert tree.export_graphviz(model, out_file=None).startswith("digraph")
    return model.score(X, y), len(drawn) / 100, model.get_n_leaves() / 100


@snippet(0.03)
def cost_complexity_pruning(m):
    X_train, X_test, y_train, y_test = _halves(*CANCER)
    path = m.DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X_train, y_train)
    alpha = path.ccp_alphas[len(path.ccp_alphas) // 2]
    pruned = m.DecisionTreeClassifier(random_state=0, ccp_alpha=alpha).fit(X_train, y_train)
    return pruned.score(X_test, y_test)


@snippet(0.05)
def regression_trees_of_two_depths(m):
    rng = np.random.RandomState(1)
    X = np.sort(5 * rng.rand(80, 1), axis=0)
    y = np.column_stack([np.sin(X).ravel(), np.cos(X).ravel()])
    y[::5] += 0.5 - rng.rand(16, 2)
    grid = np.arange(0.0, 5.0, 0.1)[:, None]
    truth = np.column_stack([np.sin(grid), np.cos(grid)])
    return [np.mean((m.DecisionTreeRegressor(max_depth=d).fit(X, y).predict(grid) - truth) ** 2) for d in (2, 5)]


@snippet(0.05)
def forest_importances_by_impurity_and_permutation(m):
    X, y = datasets.make_classification(400, 6, n_informative=2, n_redundant=0, random_state=0, shuffle=False)
    model = m.RandomForestClassifier(60, random_state=0).fit(X, y)
    permuted = inspection.permutation_importance(model, X, y, n_repeats=3, random_state=0)
    return model.feature_importances_[:2].sum(), permuted.importances_mean[2:].max()


@snippet(0.03)
def out_of_bag_error_of_a_growing_forest(m):
    model = m.RandomForestClassifier(warm_start=True, oob_score=True, random_state=0)
    scores = []
    for n in (30, 60, 90):
        scores.append(model.set_params(n_estimators=n).fit(*CANCER).oob_score_)
    assert len(model.estimators_) == 90
    return scores[-1]


@snippet(0.05)
def extra_trees_complete_faces(m):
    X = datasets.load_digits(n_class=3).data[:250]
    model = m.ExtraTreesRegressor(n_estimators=20, max_features=16, random_state=0).fit(X[:200, :32], X[:200, 32:])
    return metrics.r2_score(X[200:, 32:], model.predict(X[200:, :32]), multioutput="variance_weighted")


@snippet(0.04)
def boosting_with_staged_scores(m):
    X_train, X_test, y_train, y_test = _halves(*CANCER)
    model = m.GradientBoostingClassifier(n_estimators=60, learning_rate=0.2, max_depth=2, random_state=0)
    staged = [metrics.accuracy_score(y_test, p) for p in model.fit(X_train, y_train).staged_predict(X_test)]
    assert len(staged) == 60
    return staged[-1]


@snippet(0.12)
def prediction_intervals_by_quantile_boosting(m):
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 10, size=(400, 1))
    y = X[:, 0] * np.sin(X[:, 0]) + rng.normal(size=400) * (1 + X[:, 0] / 5)
    low, high = (
        m.GradientBoostingRegressor(loss="quantile", alpha=a, n_estimators=60, max_depth=2, random_state=0).fit(X, y)
        for a in (0.05, 0.95)
    )
    return np.mean((low.predict(X) <= y) & (y <= high.predict(X)))


@snippet(0.05)
def adaboost_of_stumps(m):
    X, y = datasets.make_hastie_10_2(n_samples=600, random_state=1)
    model = m.AdaBoostClassifier(n_estimators=80, random_state=0).fit(X[:400], y[:400])
    return model.score(X[400:], y[400:])


@snippet(0.03)
def votes_of_three_classifiers(m):
    members = [
        ("line", m.LogisticRegression(max_iter=2000)),
        ("tree", m.DecisionTreeClassifier(max_depth=3)),
        ("svm", m.SVC()),
    ]
    hard = m.VotingClassifier(members, voting="hard")
    mean = m.VotingRegressor([("line", m.LinearRegression()), ("near", m.KNeighborsRegressor())])
    return ms.cross_val_score(hard, *IRIS, cv=3).mean(), mean.fit(*DIABETES).score(*DIABETES)


@snippet(0.03)
def stacking_with_a_final_model(m):
    members = [("ridge", m.RidgeCV()), ("tree", m.DecisionTreeRegressor(max_depth=3, random_state=0))]
    model = m.StackingRegressor(members, final_estimator=m.Ridge(), cv=3).fit(*DIABETES)
    return model.score(*DIABETES), model.transform(DIABETES[0]).shape[1]


@snippet(0.03)
def bagging_of_neighbours(m):
    model = m.BaggingClassifier(
        m.KNeighborsClassifier(), n_estimators=30, max_samples=0.5, max_features=0.5, random_state=0
    )
    return model.fit(*WINE).score(*WINE), len(model.estimators_)


@snippet(0.06)
def partial_dependence_of_boosting(m):
    X, y = DIABETES
    model = m.GradientBoostingRegressor(n_estimators=40, max_depth=3, random_state=0).fit(X, y)
    found = inspection.partial_dependence(model, X, [2], grid_resolution=10)
    curve = found["average"][0]
    display = inspection.PartialDependenceDisplay.from_estimator(model, X, [2, (2, 8)], grid_resolution=5)
    assert display.axes_.size == 2
    return (curve[-1] - curve[0]) / 1000, np.corrcoef(curve, np.arange(10))[0, 1]


# ---------------------------------------------------------------------------------------------- kernels and processes


@snippet(1e-5)
def kernel_ridge_of_a_sine(m):
    rng = np.random.RandomState(0)
    X = 5 * rng.rand(80, 1)
    y = np.sin(X).ravel()
    search = ms.GridSearchCV(m.KernelRidge(kernel="rbf"), {"alpha": [1.0, 0.1, 1e-3], "gamma": [0.1, 1.0]}, cv=3)
    search.fit(X, y)
    return search.best_score_, search.best_params_["alpha"]


@snippet(1e-3)
def gaussian_process_of_a_noisy_curve(m):
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    rng = np.random.RandomState(0)
    X = rng.uniform(0, 5, 30)[:, None]
    y = 0.5 * np.sin(3 * X[:, 0]) + rng.normal(0, 0.3, 30)
    kernel = 1.0 * RBF(1.0, (1e-2, 1e3)) + WhiteKernel(1e-1, (1e-10, 1e1))
    model = m.GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)
    mean, std = model.predict(np.linspace(0, 5, 20)[:, None], return_std=True)
    return model.log_marginal_likelihood_value_, mean, std


@snippet(2e-3)
def gaussian_process_probabilities(m):
    from sklearn.gaussian_process.kernels import RBF

    X, y = MOONS
    model = m.GaussianProcessClassifier(4.0 * RBF(0.8), optimizer=None).fit(X[:100], y[:100])
    return model.score(X[100:], y[100:]), model.predict_proba(X[100:120])[:, 1], model.log_marginal_likelihood()


@snippet(0.03)
def kernel_features_before_a_linear_model(m):
    X, y = datasets.load_digits(n_class=5, return_X_y=True)
    model = make_pipeline(m.Nystroem(gamma=0.002, n_components=60, random_state=0), m.LinearSVC(random_state=0))
    return ms.cross_val_score(model, X, y, cv=3).mean()


@snippet(1e-5)
def kernel_principal_components_of_circles(m):
    X, y = datasets.make_circles(200, factor=0.3, noise=0.05, random_state=0)
    Z = m.KernelPCA(n_components=2, kernel="rbf", gamma=10).fit_transform(X)
    return np.abs(Z).mean(axis=0), m.LogisticRegression().fit(Z, y).score(Z, y)


# ---------------------------------------------------------------------------------------------- everything together


@snippet(0.02)
def columns_of_numbers_and_categories(m):
    import pandas as pd

    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "age": np.where(rng.rand(300) < 0.1, np.nan, rng.uniform(1, 70, 300)),
            "fare": rng.exponential(30, 300),
            "port": rng.choice(["C", "Q", "S"], 300),
        }
    )
    y = (table["fare"] + 20 * (table["port"] == "C") + rng.normal(0, 10, 300) > 30).astype(int)
    numbers = make_pipeline(SimpleImputer(strategy="median"), prep.StandardScaler())
    prepare = ColumnTransformer([("number", numbers, ["age", "fare"]), ("port", prep.OneHotEncoder(), ["port"])])
    model = make_pipeline(prepare, m.LogisticRegression())
    return ms.cross_validate(model, table, y, cv=4, scoring=["accuracy", "roc_auc"])["test_roc_auc"].mean()


@snippet(0.05)
def frames_that_stay_frames(m):
    import pandas as pd

    X, y = datasets.load_wine(return_X_y=True, as_frame=True)
    scaler = prep.StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, SelectFromModel(m.RandomForestClassifier(30, random_state=0)), m.Ridge())
    model[:-1].set_output(transform="pandas")
    model.fit(X, y)
    assert isinstance(model[:-1].transform(X), pd.DataFrame)
    assert list(model[-1].feature_names_in_) == list(model[:-1].get_feature_names_out())
    return model.score(X, y)


@snippet(0.02)
def calibration_of_a_margin(m):
    X, y = datasets.make_classification(600, 10, n_informative=3, random_state=0)
    X_train, X_test, y_train, y_test = _halves(X, y)
    model = CalibratedClassifierCV(m.LinearSVC(random_state=0), cv=3, method="sigmoid").fit(X_train, y_train)
    P = model.predict_proba(X_test)[:, 1]
    fraction, _ = calibration_curve(y_test, P, n_bins=3)
    return metrics.brier_score_loss(y_test, P), fraction


@snippet(0.03)
def learning_and_validation_curves(m):
    sizes, train, test = ms.learning_curve(
        m.SVC(gamma=0.01), *IRIS, cv=3, train_sizes=[0.5, 1.0], shuffle=True, random_state=0
    )
    _, valid = ms.validation_curve(m.SVC(), *IRIS, param_name="gamma", param_range=[1e-3, 1e-1], cv=3)
    return sizes, train.mean(axis=1), test.mean(axis=1), valid.mean(axis=1)


@snippet(1e-3)
def predictions_by_cross_validation(m):
    predicted = ms.cross_val_predict(m.LinearRegression(), *DIABETES, cv=10)
    scores = ms.cross_val_predict(m.LogisticRegression(max_iter=5000), *IRIS, cv=5, method="predict_proba")
    return metrics.r2_score(DIABETES[1], predicted), metrics.log_loss(IRIS[1], scores)


@snippet(0.02)
def curves_and_confusion_displayed(m):
    X_train, X_test, y_train, y_test = _halves(*CANCER)
    model = make_pipeline(prep.StandardScaler(), m.SVC(random_state=0)).fit(X_train, y_train)
    roc = metrics.RocCurveDisplay.from_estimator(model, X_test, y_test)
    confusion = metrics.ConfusionMatrixDisplay.from_estimator(model, X_test, y_test)
    recall = metrics.PrecisionRecallDisplay.from_estimator(model, X_test, y_test)
    inspection.DecisionBoundaryDisplay.from_estimator(m.SVC().fit(*MOONS), MOONS[0], response_method="predict")
    return roc.roc_auc, np.trace(confusion.confusion_matrix) / len(y_test), recall.average_precision


@snippet(0.02)
def feature_selection_of_four_kinds(m):
    X, y = prep.scale(WINE[0]), WINE[1]
    ridge = m.LogisticRegression()
    chosen = [
        RFE(ridge, n_features_to_select=4).fit(X, y).transform(X),
        SequentialFeatureSelector(ridge, n_features_to_select=3, cv=3).fit(X, y).transform(X),
        RFECV(ridge, cv=3, min_features_to_select=3, step=3).fit(X, y).transform(X),
        make_pipeline(SelectKBest(f_classif, k=4)).fit(X, y).transform(X),
    ]
    return [clone(ridge).fit(Z, y).score(Z, y) for Z in chosen]


@snippet(0.03)
def several_targets_by_wrappers(m):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(150, 4))
    Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2] - X[:, 0]]) + 0.1 * rng.normal(size=(150, 2))
    regressors = MultiOutputRegressor(m.SVR(C=10)), RegressorChain(m.Ridge(), order=[1, 0])
    classifiers = MultiOutputClassifier(m.LogisticRegression()), ClassifierChain(m.LogisticRegression())
    return [r.fit(X, Y).score(X, Y) for r in regressors] + [c.fit(X, Y > 0).score(X, Y > 0) for c in classifiers]


@snippet(0.03)
def several_classes_by_wrappers(m):
    pairs = OneVsOneClassifier(m.LinearSVC(random_state=0)).fit(*IRIS)
    codes = OutputCodeClassifier(m.LogisticRegression(max_iter=1000), code_size=4, random_state=0).fit(*IRIS)
    return pairs.score(*IRIS), codes.score(*IRIS)


@snippet(0.03)
def missing_values_and_few_labels(m):
    rng = np.random.RandomState(0)
    X, y = IRIS
    holes = np.where(rng.rand(*X.shape) < 0.1, np.nan, X)
    filled = IterativeImputer(m.Ridge(), random_state=0, max_iter=30, tol=1e-2).fit_transform(holes)
    few = np.where(rng.rand(len(y)) < 0.7, -1, y)
    model = SelfTrainingClassifier(m.SVC(probability=True, gamma="auto", random_state=0)).fit(filled, few)
    return np.abs(filled - X).mean(), model.score(filled, y)


@snippet(0.03)
def union_of_components_and_columns(m):
    union = FeatureUnion([("pca", PCA(2)), ("best", SelectKBest(k=1))])
    grid = {"union__pca__n_components": [1, 2], "svc__C": [0.1, 1, 10]}
    search = ms.GridSearchCV(Pipeline([("union", union), ("svc", m.SVC(kernel="linear"))]), grid, cv=3)
    columns = make_column_transformer((prep.StandardScaler(), [0, 1]), (prep.MinMaxScaler(), slice(2, 4)))
    plain = make_pipeline(columns, m.KNeighborsClassifier()).fit(*IRIS)
    return search.fit(*IRIS).best_score_, plain.score(*IRIS)


@snippet(1e-3)
def sparse_input_in_three_formats(m):
    X = sp.random(200, 50, density=0.1, random_state=0)
    y = np.asarray(X @ np.arange(50.0)).ravel() / 10 + 0.1
    return [
        m.Ridge(alpha=0.1).fit(made(X), y).score(made(X), y) for made in (sp.csr_matrix, sp.csc_matrix, sp.coo_array)
    ]


@snippet(0.02)
def successive_halving(m):
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.1, 1.0]}
    search = ms.HalvingGridSearchCV(m.SVC(), grid, cv=3, factor=2, random_state=0).fit(*MOONS)
    return search.best_score_
