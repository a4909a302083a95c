"""Linear models, support vectors and text."""

from __future__ import annotations

import numpy as np
from sklearn import datasets, metrics, model_selection as ms, preprocessing as prep
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from user_guide import CANCER, DIABETES, IRIS, MOONS, SENTENCES, TOPICS, halves, snippet

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
    X_train, X_test, y_train, y_test = halves(prep.scale(X), y, test_size=100)
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
    X_train, X_test, y_train, y_test = halves(*CANCER)
    model = make_pipeline(prep.StandardScaler(), m.SGDClassifier(loss="log_loss", early_stopping=True, random_state=0))
    return model.fit(X_train, y_train).score(X_test, y_test)


@snippet(0.06)
def learning_from_batches_with_partial_fit(m):
    X_train, X_test, y_train, y_test = halves(prep.scale(CANCER[0]), CANCER[1])
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
    X_train, X_test, y_train, y_test = halves(*IRIS)
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
