"""Early stopping on given rows, carried through pipelines and searches: preprocessing never learns from them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor

OPTIONS = {"n_estimators": 60, "n_iter_no_change": 3, "learning_rate": 0.5, "random_state": 0, "min_samples_leaf": 5}


class Recorder(TransformerMixin, BaseEstimator):
    """Centres, and keeps the rows that it learnt from."""

    def fit(self, X, y=None):
        self.seen_ = np.array(X)
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = (X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=500) > 0).astype(int)
    return (X[:300], y[:300]), (X[300:] + 0.3, y[300:])


@pytest.mark.parametrize("cls", [GradientBoostingClassifier, GradientBoostingRegressor])
def test_a_validation_set_passes_the_fitted_steps(problem, cls):
    (X, y), (V, w) = problem
    with config_context(enable_metadata_routing=True):
        model = cls(**OPTIONS).set_fit_request(X_val=True, y_val=True)
        pipe = Pipeline([("centre", Recorder()), ("boost", model)], transform_input=["X_val"])
        pipe.fit(X, y, X_val=V, y_val=w)
    assert_array_equal(pipe["centre"].seen_, X)  # nothing but the training rows
    step = Recorder().fit(X)
    alone = cls(**OPTIONS).fit(step.transform(X), y, X_val=step.transform(V), y_val=w)
    assert 0 < pipe["boost"].n_estimators_ == alone.n_estimators_ < 60
    assert_array_equal(pipe["boost"].history_.validation, alone.history_.validation)
    assert_array_equal(pipe.predict(V), alone.predict(step.transform(V)))
    # Another validation set stops the fit at another round, and changes nothing before.
    with config_context(enable_metadata_routing=True):
        other = Pipeline([("centre", Recorder()), ("boost", model)], transform_input=["X_val"])
        other.fit(X, y, X_val=V[::-1] * 2, y_val=w)
    rounds = min(other["boost"].n_iter_, alone.n_iter_)
    assert_array_equal(other["boost"].history_.objective[:rounds], alone.history_.objective[:rounds])


def test_a_validation_set_in_a_search(problem):
    (X, y), (V, w) = problem
    with config_context(enable_metadata_routing=True):
        model = GradientBoostingClassifier(**OPTIONS).set_fit_request(X_val=True, y_val=True, sample_weight_val=True)
        pipe = make_pipeline(StandardScaler(), model, transform_input=["X_val"])
        search = GridSearchCV(pipe, {"gradientboostingclassifier__max_leaf_nodes": [2, 8]}, cv=2)
        search.fit(X, y, X_val=V, y_val=w, sample_weight_val=np.ones(len(w)))
    best = search.best_estimator_[-1]
    assert len(best.history_.validation) == best.n_iter_ < 60
    scaler = StandardScaler().fit(X)
    assert_array_equal(search.best_estimator_[0].mean_, scaler.mean_)
