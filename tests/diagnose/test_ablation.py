"""Ablation: the component that contributes most is found, and numbers are those of cross-validation."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import epicycle as ep
from epicycle import diagnose
from epicycle.exceptions import ParameterError


@pytest.fixture(scope="module")
def grouped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    return X, 3 * X[:, 0] + X[:, 3] + rng.normal(size=300)


GROUPS = {"strong": [0, 1], "weak": [2, 3], "noise": [4, 5]}


@pytest.mark.parametrize("order", [["strong", "weak", "noise"], ["noise", "weak", "strong"]])
def test_the_group_that_carries_the_score(grouped, order):
    found = diagnose.ablation(ep.Ridge(), *grouped, {name: GROUPS[name] for name in order})
    assert found.best == "strong"
    assert found.drops["strong"] > found.drops["weak"] > 0
    assert "try without noise" in found.next_steps[0]
    assert found.table["component"].tolist() == ["overall system", *order]
    assert found.cumulative[order[-1]] < 0.01  # nothing is left: the mean of y
    assert found.plot().get_xlabel().startswith("r2 lost")


def test_numbers_are_those_of_cross_validation(grouped):
    X, y = grouped
    cv = KFold(5, shuffle=True, random_state=0)
    found = diagnose.ablation(ep.Ridge(), X, y, GROUPS, cv=cv)
    whole = cross_val_score(ep.Ridge(), X, y, cv=cv)
    without = cross_val_score(ep.Ridge(), X[:, [0, 1, 4, 5]], y, cv=cv)
    both = cross_val_score(ep.Ridge(), X[:, [4, 5]], y, cv=cv)
    row = found.table.set_index("component").loc["weak"]
    assert_allclose(row["score_without"], without.mean())
    assert_allclose(row["drop"], (whole - without).mean())
    assert_allclose(row["drop_error"], (whole - without).std(ddof=1) * np.sqrt(1 / 5 + 1 / 4))
    assert_allclose(row["cumulative"], both.mean())


def test_components_that_carry_the_same_are_not_put_in_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=300)
    verdict = diagnose.ablation(ep.Ridge(), X, y).verdict
    assert "contributes as much cannot be ruled out" in verdict
    assert "x2" not in verdict
    one = diagnose.ablation(ep.Ridge(), X, y, cv=[(np.arange(200), np.arange(200, 300))])
    assert "no standard error is known" in one.notes[-1]


def test_components_of_a_pipeline_and_names_of_columns(grouped):
    X, y = grouped
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline(PolynomialFeatures(2), ep.Ridge())
    target = y + 4 * X[:, 4] * X[:, 5]
    parts = {"products": {"polynomialfeatures": "passthrough"}, "a": "a", "d and f": ["d", "f"]}
    found = diagnose.ablation(model, frame, target, parts)
    assert found.best in ("products", "d and f")
    assert found.drops["products"] > 0.3
    assert diagnose.ablation(ep.Ridge(), frame, y).table["component"].tolist() == ["overall system", *"abcdef"]


@pytest.mark.slow
def test_the_rate_of_false_alarms():
    """A column of noise is said to matter in at most about 1 in 40 data sets."""
    rng, alarms, runs = np.random.default_rng(0), 0, 60
    for i in range(runs):
        X = rng.normal(size=(80, 2))
        y = X[:, 0] + rng.normal(size=80)
        found = diagnose.ablation(ep.LinearRegression(), X, y, {"noise": [1]}, random_state=i, n_jobs=1)
        alarms += found.verdict.startswith("noise contributes")
    assert alarms <= 5


def test_components_that_stand_in_for_each_other(grouped):
    X, y = grouped
    doubled = np.column_stack([X[:, [0]], X[:, [0]] + 1e-3 * X[:, [5]], X[:, [3]]])
    found = diagnose.ablation(ep.Ridge(), doubled, y, {"one": [0], "twin": [1], "other": [2]})
    assert found.best == "other"
    assert found.table["cumulative_drop"].iloc[2] > 0.5


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({}, "components="),
        ({"a": [9]}, r"components\['a'\]: 9"),
        ({"a": "x"}, "'x' is no column"),
        ({"a": []}, "no columns"),
        ({"a": {"nothing": 1}}, r"components\['a'\]"),
    ],
)
def test_bad_components(grouped, components, message):
    with pytest.raises(ParameterError, match=message):
        diagnose.ablation(ep.Ridge(), *grouped, components)
