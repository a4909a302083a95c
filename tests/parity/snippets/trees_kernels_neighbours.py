"""Neighbours, trees, ensembles, kernels and Gaussian processes."""

from __future__ import annotations

import numpy as np
from sklearn import datasets, inspection, metrics, model_selection as ms, preprocessing as prep
from sklearn.manifold import Isomap
from sklearn.pipeline import make_pipeline
from user_guide import CANCER, DIABETES, IRIS, MOONS, WINE, halves, snippet

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
    X_train, X_test, y_train, y_test = halves(*WINE)
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
    X_train, X_test, y_train, y_test = halves(*CANCER)
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
    X_train, X_test, y_train, y_test = halves(*CANCER)
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
