"""The estimators as parts of scikit-learn: its checks however they are configured, pipelines, searches, set_output."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import BaggingRegressor, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from epicycle import LinearRegression, LogisticRegression, Ridge
from epicycle.exceptions import ConvergenceWarning

CONFIGURED = [
    LinearRegression(fit_intercept=False, solver="cholesky"),
    LinearRegression(solver="qr"),
    LinearRegression(solver="newton", n_jobs=2),
    Ridge(fit_intercept=False),
    Ridge(solver="qr"),
    Ridge(solver="bfgs"),
    Ridge(alpha=0.0),
    LogisticRegression(fit_intercept=False),
    LogisticRegression(solver="bfgs"),
    LogisticRegression(C=1e3, solver="newton"),
    LogisticRegression(class_weight="balanced"),
]


def applies(estimator, check):
    """All but two: array API input needs an environment variable; and without an intercept no class can be favoured.

    (scikit-learn's own LogisticRegression without an intercept fails that one, too.)
    """
    name = check.func.__name__
    return name != "check_array_api_input" and (name != "check_class_weight_classifiers" or estimator.fit_intercept)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [pair for model in CONFIGURED for pair in estimator_checks_generator(model) if applies(*pair)],
    ids=lambda part: part.func.__name__ if hasattr(part, "func") else str(part),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


@pytest.fixture(scope="module")
def tumours():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def test_pipeline_and_cross_validation(diabetes, tumours):
    regression = cross_val_score(make_pipeline(StandardScaler(), Ridge(10.0)), *diabetes, cv=5)
    assert 0.4 < regression.mean() < 0.55
    classification = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), *tumours, cv=5)
    assert classification.mean() > 0.97
    P = cross_val_predict(make_pipeline(StandardScaler(), LogisticRegression()), *tumours, cv=3, method="predict_proba")
    assert P.shape == (569, 2)
    assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_grid_search(diabetes, backend):
    grid = {"ridge__alpha": [1e-3, 1.0, 1e3], "ridge__fit_intercept": [True, False], "ridge__solver": ["auto", "qr"]}
    with parallel_config(backend):
        search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), grid, cv=3, n_jobs=2).fit(*diabetes)
    assert search.best_params_["ridge__fit_intercept"] is True
    by_solver = search.cv_results_["mean_test_score"].reshape(3, 2, 2)
    assert_allclose(by_solver[..., 0], by_solver[..., 1], rtol=1e-8)
    assert search.best_estimator_[-1].certificate_.holds


def test_column_transformer_with_names(tumours):
    X, y = tumours
    X = X.iloc[:, :4].assign(size=np.where(X["mean area"] > 600, "large", "small"))
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), make_column_selector(dtype_include="number")),
            ("words", OneHotEncoder(sparse_output=False), ["size"]),
        ]
    ).set_output(transform="pandas")
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    assert model[-1].feature_names_in_[-1] == "words__size_small"
    assert model[-1].summary().rows[-1] == "words__size_small"
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("kind", ["default", "pandas", "polars"])
def test_set_output(diabetes, kind):
    X, y = diabetes
    names = list(X.columns)
    table = pl.DataFrame({name: X[name].to_numpy() for name in names}) if kind == "polars" else X
    for model in (LinearRegression(), Ridge()):
        pipe = make_pipeline(StandardScaler(), clone(model)).set_output(transform=kind).fit(table, y)
        plain = make_pipeline(StandardScaler(), clone(model)).fit(X.to_numpy(), y)
        assert_allclose(pipe[-1].coef_, plain[-1].coef_, rtol=1e-10)
        assert_allclose(pipe.predict(table), plain.predict(X.to_numpy()), rtol=1e-10)
        if kind != "default":
            assert pipe[-1].feature_names_in_.tolist() == names


def test_clone_keeps_every_parameter_and_nothing_fitted(diabetes):
    for model in CONFIGURED:
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert set(vars(copy)) == set(model.get_params())
    options = {"step": 0.1}
    model = Ridge(alpha=np.array([1.0, 2.0]), solver="gd", solver_options=options)
    assert clone(model).solver_options == options
    assert_array_equal(clone(model).alpha, [1.0, 2.0])
    fitted = LinearRegression().fit(*diabetes)
    again = clone(fitted).fit(*diabetes)
    assert_array_equal(again.coef_, fitted.coef_)


def test_refit_with_other_parameters(diabetes):
    X, y = diabetes
    model = Ridge(1e-9).fit(X, y)
    weak = model.coef_
    model.set_params(alpha=1e6).fit(X, y)
    assert np.linalg.norm(model.coef_) < 0.5 * np.linalg.norm(weak)
    two = model.fit(X, np.column_stack([y, y]))
    assert two.coef_.shape == (2, 10)
    assert model.fit(X.iloc[:, :3], y).coef_.shape == (3,)


def test_inside_other_estimators(diabetes, tumours):
    X, y = tumours
    X = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)
    assert RFE(LogisticRegression(), n_features_to_select=5).fit(X, y).support_.sum() == 5
    assert SelectFromModel(LogisticRegression()).fit(X, y).transform(X[:2]).shape[1] < 30
    assert OneVsRestClassifier(LogisticRegression()).fit(X, y).score(X, y) > 0.97
    both = [("a", LogisticRegression()), ("b", LogisticRegression(C=0.01))]
    assert VotingClassifier(both, voting="soft").fit(X, y).score(X, y) > 0.97
    assert StackingClassifier(both, cv=3).fit(X, y).score(X, y) > 0.97
    X, y = diabetes
    assert BaggingRegressor(Ridge(), 5, random_state=0).fit(X, y).score(X, y) > 0.45
    assert MultiOutputRegressor(LinearRegression()).fit(X, np.column_stack([y, -y])).predict(X).shape == (442, 2)
    logs = TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp).fit(X, y)
    assert logs.predict(X).min() > 0


def test_sample_weights_in_a_pipeline(diabetes):
    X, y = diabetes
    w = np.random.default_rng(0).uniform(0, 2, len(y))
    pipe = make_pipeline(StandardScaler(), Ridge()).fit(X, y, ridge__sample_weight=w)
    scaled = (X - X.mean()) / X.std(ddof=0)
    assert_allclose(pipe[-1].coef_, Ridge().fit(scaled.to_numpy(), y, w).coef_, rtol=1e-8)


def test_warnings_come_through_a_search(diabetes):
    search = GridSearchCV(Ridge(solver="gd", max_iter=1), {"alpha": [1.0]}, cv=2, refit=False)
    with pytest.warns(ConvergenceWarning, match="Ridge"):
        search.fit(*diabetes)
