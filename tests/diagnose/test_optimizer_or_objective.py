"""Optimiser stopped early, and the wrong objective: told apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import (
    LinearRegression as SklearnLinearRegression,
    LogisticRegression as SklearnLogisticRegression,
)

import epicycle as ep
from epicycle import diagnose
from epicycle.diagnose._optimizer_or_objective import objective_of
from epicycle.exceptions import NotFittedError, ParameterError, ParameterTypeError


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) * [1, 10, 100, 1]
    z = X @ [1, 0.2, 0.02, -1]
    return X, (z + rng.logistic(size=600) > 0).astype(int)


def early(X, y):
    with ep.config(on_nonconvergence="ignore"):
        return ep.LogisticRegression(solver="gd", max_iter=3).fit(X, y)


def test_an_optimiser_that_was_stopped_early(classes):
    X, y = classes
    for better in (ep.LogisticRegression().fit(X, y), SklearnLogisticRegression(max_iter=5000).fit(X, y)):
        found = diagnose.optimizer_or_objective(early(X, y), better, X, y)
        assert found.kind == "optimizer"
        assert found.objective_b < found.objective_a
        assert found.score_b > found.score_a
        assert not found.proven
        assert found.next_steps[0] == "run more iterations"
        assert found.plot().get_title() == "the optimiser"


def test_the_wrong_objective(classes):
    X, y = classes
    shrunk, free = ep.LogisticRegression(C=1e-7).fit(X, y), ep.LogisticRegression().fit(X, y)
    found = diagnose.optimizer_or_objective(shrunk, free, X, y)
    assert found.kind == "objective"
    assert found.proven
    assert found.objective_b > found.objective_a
    assert "certificate" in found.verdict
    assert found.next_steps[0] == "change the strength of the penalty"


def test_weighted_accuracy_as_in_the_lecture(classes):
    """A score that counts one class ten times: plain likelihood is the wrong objective for it."""
    X, y = classes

    def weighted(model, X, y):
        return float(np.average(model.predict(X) == y, weights=np.where(y == 1, 10, 1)))

    a = ep.LogisticRegression().fit(X, y)
    b = ep.LogisticRegression(class_weight={0: 1, 1: 10}).fit(X, y)
    found = diagnose.optimizer_or_objective(a, b, X, y, scoring=weighted)
    assert found.kind == "objective"
    assert found.score_b > found.score_a


def test_least_squares_against_absolute_deviations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + np.where(rng.random(300) < 0.1, 50.0, 0.1) * rng.normal(size=300)
    X_new = rng.normal(size=(300, 3))
    y_new = X_new @ [1.0, 2.0, 3.0]
    found = diagnose.optimizer_or_objective(
        ep.LinearRegression().fit(X, y), ep.QuantileRegressor(alpha=0).fit(X, y), X_new, y_new, X_train=X, y_train=y
    )
    assert found.kind == "objective"
    assert found.names == ("LinearRegression", "QuantileRegressor")


def test_no_difference_is_nobodys_fault(classes):
    X, y = classes
    model = ep.LogisticRegression().fit(X, y)
    found = diagnose.optimizer_or_objective(model, ep.LogisticRegression(C=2.0).fit(X, y), X, y)
    assert found.kind == "neither"


def test_a_worse_model_explains_nothing(classes):
    X, y = classes
    good = ep.LogisticRegression().fit(X, y)
    found = diagnose.optimizer_or_objective(good, early(X, y), X, y)
    assert found.kind == "neither"
    assert "nothing to explain" in found.verdict
    assert "noise" not in found.verdict


def test_a_given_objective_and_parameters_by_hand():
    class Controller:
        def __init__(self, gain):
            self.gain = gain

        def predict(self, X):
            return self.gain * X[:, 0]

    X = np.random.default_rng(0).normal(size=(100, 1))
    y = 2 * X[:, 0]
    poor, good = Controller(1.0), Controller(1.9)
    right = lambda c: (c.gain - 2) ** 2  # noqa: E731
    wrong = lambda c: (c.gain - 1) ** 2  # noqa: E731
    assert diagnose.optimizer_or_objective(poor, good, X, y, objective=right, scoring="r2").kind == "optimizer"
    assert diagnose.optimizer_or_objective(poor, good, X, y, objective=wrong, scoring="r2").kind == "objective"


def test_a_certificate_that_contradicts_a_given_objective_is_named(classes):
    X, y = classes
    a, b = ep.LogisticRegression(C=1e-7).fit(X, y), ep.LogisticRegression().fit(X, y)
    found = diagnose.optimizer_or_objective(a, b, X, y, objective=lambda m: -m.score(X, y))
    assert found.kind == "optimizer"
    assert "contradicts this" in found.notes[0]


def test_a_certificate_is_enough():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=200)
    a = ep.HuberRegressor().fit(X, y)  # its objective is not known here, but it is proven
    found = diagnose.optimizer_or_objective(a, ep.RandomForestRegressor(random_state=0).fit(X, y), X, y)
    assert found.kind == "objective"
    assert np.isnan(found.objective_a)
    assert found.plot().get_title() == "the objective"


MODELS = [
    ep.LinearRegression(),
    ep.Ridge(alpha=3.0),
    ep.Ridge(alpha=3.0, penalty_weights=[0.0, 1.0, 2.0]),
    ep.Lasso(alpha=0.1),
    ep.ElasticNet(alpha=0.1, l1_ratio=0.3),
    ep.QuantileRegressor(quantile=0.3, alpha=0.05),
    ep.LogisticRegression(C=0.5),
    ep.LogisticRegression(C=0.5, l1_ratio=0.4, class_weight="balanced"),
    ep.LogisticRegression(C=np.inf),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_objectives_are_those_that_the_fits_report(model, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.normal(size=150)
    if isinstance(model, ep.LogisticRegression):
        y = np.digitize(y, [-0.5, 1.0])
    weight = rng.integers(1, 4, size=150).astype(float) if weighted else None
    model.fit(X, y, sample_weight=weight)
    J = objective_of(model, X, y, weight)
    assert_allclose(J(model), model.history_.objective[-1], rtol=1e-7)


def test_it_is_the_minimum_for_every_other_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.normal(size=50)
    for model in MODELS[:6]:
        J = objective_of(model.fit(X, y), X, y, None)
        assert J(SklearnLinearRegression().fit(X + 0.1, y)) >= J(model)


def test_bad_input(classes):
    X, y = classes
    good = ep.LogisticRegression().fit(X, y)
    with pytest.raises(ParameterTypeError, match="model_b=3"):
        diagnose.optimizer_or_objective(good, 3, X, y)
    with pytest.raises(NotFittedError, match="model_b: "):
        diagnose.optimizer_or_objective(good, ep.LogisticRegression(), X, y)
    with pytest.raises(ParameterError, match="X_train, y_train: expected both"):
        diagnose.optimizer_or_objective(good, good, X, y, X_train=X)
    tree = ep.DecisionTreeClassifier(max_depth=1).fit(X, y)
    with pytest.raises(ParameterError, match="objective: that of DecisionTreeClassifier is not known"):
        diagnose.optimizer_or_objective(tree, good, X, y)
    with pytest.raises(ParameterError, match="model_b: DecisionTreeClassifier has no coef_"):
        diagnose.optimizer_or_objective(early(X, y), ep.DecisionTreeClassifier().fit(X, y), X, y)
    with pytest.raises(ParameterError, match="objective: gave"):
        diagnose.optimizer_or_objective(tree, good, X, y, objective=lambda m: np.nan)
