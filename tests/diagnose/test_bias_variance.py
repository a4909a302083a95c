"""Bias or variance: planted cases are told apart, by the rules that the documentation states."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle import diagnose
from epicycle.diagnose._bias_variance import Level, assessed
from epicycle.diagnose._learning_curves import Curve
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError


def wave(n, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)


def linear(n, p, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + noise * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_a_line_through_a_wave_is_biased(seed):
    found = diagnose.bias_variance(ep.LinearRegression(), *wave(300, seed))
    assert found.kind == "high bias"
    assert found.bias > 5 * found.variance
    assert "leave the number of rows as it is" in found.next_steps[-1]
    assert found.verdict.startswith("High bias")


@pytest.mark.parametrize("seed", range(3))
def test_a_deep_tree_on_noise_overfits(seed):
    found = diagnose.bias_variance(ep.DecisionTreeRegressor(), *linear(150, 5, seed, noise=1.5))
    assert found.kind == "high variance"
    assert found.train_score == pytest.approx(1.0)
    assert any("min_samples_leaf" in step for step in found.next_steps)


def test_a_polynomial_of_too_high_a_degree_overfits():
    X, y = wave(60, noise=0.5)
    found = diagnose.bias_variance(ep.PolynomialRegression(degree=25), X, y, cv=10, sizes=(0.5, 1.0))
    assert found.kind == "high variance"
    assert any("lower degree" in step for step in found.next_steps)


@pytest.mark.parametrize("seed", range(2))
def test_the_right_model_fits_well(seed):
    found = diagnose.bias_variance(ep.LinearRegression(), *linear(700, 5, seed))
    assert found.kind == "good fit"
    assert found.next_steps == ()


@pytest.mark.parametrize("seed", range(3))
def test_the_right_model_on_few_rows_needs_more(seed):
    X, y = linear(400, 150, seed, noise=4.0)
    found = diagnose.bias_variance(ep.LinearRegression(), X, y, desired=0.7, sizes=(0.5, 0.75, 1.0), cv=10)
    assert found.kind == "needs more data"
    assert "more rows" in found.next_steps[0]


def test_two_folds_do_not_ask_for_rows():
    """Student's t of two folds is 13: the errors are not large, they are hardly known."""
    train, validation = np.array([[0.80, 0.81], [0.79, 0.80]]), np.array([[0.74, 0.76], [0.77, 0.79]])
    arguments = {"ratio": 1.0, "sign": 1, "certificate": None, "n_features": 5}
    level = Level(0.78, validation[-1], "the best of the search")
    curve = Curve(np.array([100.0, 400.0]), train, validation)
    found = assessed(ep.LinearRegression(), curve, "R2", level, 0.0, **arguments)
    assert found.kind == "undecided"
    assert "2 folds are too few to tell: it scores 0.795" in found.verdict
    assert "more folds" in found.next_steps[0]
    far_apart = Curve(curve.x, train, validation + np.array([0.2, -0.2]))
    assert assessed(ep.LinearRegression(), far_apart, "R2", level, 0.0, **arguments).kind == "needs more data"


def test_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(400) < 0.05), "same", "other")
    found = diagnose.bias_variance(ep.LogisticRegression(), X, y)
    assert found.kind == "high bias"
    assert found.metric == "accuracy"
    assert any("raise C" in step for step in found.next_steps)


def test_a_level_that_is_asked_for():
    X, y = linear(400, 5)
    assert diagnose.bias_variance(ep.LinearRegression(), X, y, desired=0.5).kind == "good fit"
    found = diagnose.bias_variance(ep.LinearRegression(), X, y, desired=1.0)
    assert found.kind == "high bias"
    assert found.desired_from == "as given"
    reference = diagnose.bias_variance(ep.Ridge(alpha=1e4), X, y, desired=ep.LinearRegression())
    assert reference.kind == "high bias"
    assert reference.desired_from == "LinearRegression"
    assert any("lower alpha" in step for step in reference.next_steps)


def test_numbers_are_those_of_cross_validation():
    X, y = linear(120, 4)
    cv = KFold(4, shuffle=True, random_state=1)
    found = diagnose.bias_variance(ep.Ridge(), X, y, cv=cv, sizes=(0.5, 1.0), scoring="neg_mean_squared_error")
    peer = cross_validate(ep.Ridge(), X, y, cv=cv, scoring="neg_mean_squared_error", return_train_score=True)
    assert_allclose(np.sort(found.curve.validation[-1]), np.sort(peer["test_score"]), rtol=1e-9)
    assert_allclose(found.train_score, peer["train_score"].mean(), rtol=1e-9)
    assert_allclose(found.gap, peer["train_score"].mean() - peer["test_score"].mean(), rtol=1e-6)
    assert found.table["value"].tolist() == [45, 90]


def test_against_a_parameter():
    X, y = wave(100)
    found = diagnose.bias_variance(
        ep.PolynomialRegression(), X, y, parameter="degree", values=[1, 3, 9], sizes=(0.5, 1.0)
    )
    assert found.best_value == 9
    assert found.table["against"].tolist() == ["rows"] * 2 + ["degree"] * 3
    assert found.plot(against="parameter").get_xlabel() == "degree"
    named = diagnose.bias_variance(
        ep.DecisionTreeRegressor(),
        X,
        y,
        parameter="criterion",
        values=["squared_error", "absolute_error"],
        sizes=(0.5, 1.0),
    )
    assert named.plot(against="parameter").get_xlabel() == "criterion"


def test_a_fit_that_did_not_end_is_said_first():
    X, y = linear(200, 4)
    X = X * [1, 10, 100, 1000]
    labels = y > y.mean()
    with ep.config(on_nonconvergence="ignore"):
        found = diagnose.bias_variance(ep.LogisticRegression(solver="gd", max_iter=3), X, labels)
    assert found.kind == "high bias"
    assert found.next_steps[0].startswith("finish the fit first")
    assert "max_iter" in found.next_steps[0]


def test_the_same_for_any_number_of_threads_and_frames():
    X, y = linear(150, 3)
    model = make_pipeline(StandardScaler(), ep.RandomForestRegressor(n_estimators=5))
    frame = pd.DataFrame(X, columns=list("abc"))
    one = diagnose.bias_variance(model, frame, y, n_jobs=1, sizes=(0.5, 1.0))
    two = diagnose.bias_variance(model, frame, y, n_jobs=2, sizes=(0.5, 1.0))
    assert str(one) == str(two)
    assert np.array_equal(one.curve.validation, two.curve.validation)


def test_representations():
    found = diagnose.bias_variance(ep.LinearRegression(), *wave(200))
    assert found.verdict in str(found).replace("\n", " ")
    assert "Next steps" in str(found)
    assert "<table>" in found._repr_html_()
    axis = found.plot()
    assert axis.get_title() == "high bias"
    assert found.plot(axis) is axis
    assert found.to_dict()["kind"] == "BiasVariance"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": ep.Ridge}, ParameterTypeError, "model="),
        ({"sizes": [0.5]}, ParameterTypeError, "sizes="),
        ({"sizes": [-1, 1]}, ParameterTypeError, "sizes="),
        ({"parameter": "alfa", "values": [1, 2]}, ParameterError, "parameter='alfa'"),
        ({"parameter": "alpha"}, ParameterError, "values="),
        ({"desired": "high"}, ParameterTypeError, "desired='high'"),
        ({"tolerance": 2}, ParameterError, "tolerance=2"),
        ({"y": np.zeros(3)}, DataError, "y: 3 values"),
        ({"cv": 300}, DataError, "samples"),
    ],
)
def test_bad_input(change, error, message):
    X, y = linear(50, 3)
    given = {"model": ep.Ridge(), "X": X, "y": y, **change}
    with pytest.raises(error, match=message):
        diagnose.bias_variance(given.pop("model"), given.pop("X"), given.pop("y"), **given)
