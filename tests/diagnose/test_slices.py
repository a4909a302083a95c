"""Slices: planted weak spots are found and described; intervals hold for all slices at once."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, cross_val_predict

import epicycle as ep
from epicycle import diagnose
from epicycle.exceptions import DataError, ParameterError


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n) * np.where(X[:, 1] > 0.7, 2.0, 0.1)


def test_slices_of_groups_allow_for_rows_that_go_together():
    """The noise belongs to groups of 20 rows: taken as rows of their own they make slices out of chance."""
    rng, alarms, runs = np.random.default_rng(0), {"rows": 0, "groups": 0}, 25
    model = ep.LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 0.0, 0.0])
    groups = np.repeat(np.arange(40), 20)
    for i in range(runs):
        X = rng.uniform(size=(40, 2))[groups] + 0.01 * rng.uniform(size=(800, 2))
        y = np.abs(rng.normal(size=40))[groups]
        for name, given in (("rows", None), ("groups", groups)):
            found = diagnose.slices(model, X, y, cv="prefit", groups=given, max_slices=4, random_state=i, n_jobs=1)
            alarms[name] += found.worst is not None
    assert alarms["rows"] > 15
    assert alarms["groups"] <= 4
    with pytest.raises(DataError, match="groups: 3 of them"):
        diagnose.slices(model, X, y, cv="prefit", groups=groups % 3)


def test_a_planted_weak_spot():
    X, y = noisy(1000)
    found = diagnose.slices(ep.LinearRegression(), X, y, max_slices=2)
    assert found.worst.startswith("x1 > 0.")
    assert abs(float(found.worst.split("> ")[1]) - 0.7) < 0.02
    top = found.table.iloc[0]
    assert top["lower"] > 0
    assert_allclose(top["above_rest"], np.sqrt(2 / np.pi) * 1.9, rtol=0.15)
    assert top["share_of_loss"] > 0.8
    assert found.plot().get_xlabel().startswith("absolute error above the rest")


def test_no_weak_spot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    found = diagnose.slices(ep.LinearRegression(), X, X[:, 0] + rng.normal(size=600))
    assert found.worst is None
    assert found.verdict.startswith("No slice is significantly worse")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_of_text_and_categories(kind):
    rng = np.random.default_rng(0)
    n = 900
    town = rng.choice(["Ulm", "Bonn", "Kiel"], size=n)
    columns = {"town": town, "age": rng.uniform(20, 80, size=n), "x": rng.normal(size=n)}
    columns["when"] = np.datetime64("2020-01-01") + rng.integers(0, 100, size=n).astype("timedelta64[D]")
    if kind == "pandas":
        frame = pd.DataFrame(columns)
        frame["region"] = pd.Categorical(np.where(rng.random(n) < 0.5, "north", "south"))
    else:
        import polars as pl

        frame = pl.DataFrame(columns)
    wrong = np.where(town == "Kiel", 0.5, 0.05)
    y = (columns["x"] > 0) ^ (rng.random(n) < wrong)
    found = diagnose.slices(ep.LogisticRegression(), columns["x"][:, None], y, features=frame, max_slices=2)
    assert found.metric == "error"
    assert found.worst in ("town in {Kiel}", "town not in {Bonn, Ulm}")
    assert "when" in found.notes[0]


def test_losses_are_those_of_held_out_predictions():
    X, y = noisy(300)
    cv = KFold(5, shuffle=True, random_state=0)
    found = diagnose.slices(ep.LinearRegression(), X, y, cv=cv, loss="squared_error")
    expected = (y - cross_val_predict(ep.LinearRegression(), X, y, cv=cv)) ** 2
    assert_allclose(found.losses, expected, rtol=1e-9)
    worst = found.examples
    assert worst["row"].tolist() == np.argsort(-expected, kind="stable")[:10].tolist()
    assert_allclose(worst["loss"], np.sort(expected)[::-1][:10])
    assert_allclose(found.loss, expected.mean())


def test_other_losses_and_fitted_models():
    X, y = noisy(600)
    labels = np.where(y > 0.5, "up", "down")
    model = ep.LogisticRegression().fit(X[:300], labels[:300])
    found = diagnose.slices(model, X[300:], labels[300:], cv="prefit", loss="log_loss")
    p = model.predict_proba(X[300:])[np.arange(300), (labels[300:] == "up").astype(int)]
    assert_allclose(found.losses, -np.log(p))
    own = diagnose.slices(ep.LinearRegression(), X, y, loss=lambda y, f: np.maximum(y - f, 0), cv=3)
    assert (own.losses >= 0).all()
    ordered = diagnose.slices(ep.LinearRegression(), X, y, ordered=True, cv=3)
    assert np.isnan(ordered.losses[:100]).all()


def test_all_intervals_hold_at_once():
    """Loss of mean 1 in all slices: no interval should miss zero in 95% of data sets."""
    rng, misses, runs = np.random.default_rng(0), 0, 150
    for i in range(runs):
        X = rng.uniform(size=(300, 2))
        found = diagnose.slices(
            Constant(),
            X,
            rng.exponential(size=300) * np.sign(rng.normal(size=300)),
            cv="prefit",
            random_state=i,
            min_rows=20,
            max_slices=4,
            n_jobs=1,
        )
        misses += any(
            low > 0 or high < 0 for low, high in zip(*(found.columns[c] for c in ("lower", "upper")), strict=True)
        )
    assert misses / runs <= 0.09  # at 0.05 more happen in fewer than 2 of 100 repetitions


class Constant:
    """Predicts zero, and is fitted already."""

    _estimator_type = "regressor"

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def __sklearn_tags__(self):
        from sklearn.base import BaseEstimator, RegressorMixin

        return type("R", (RegressorMixin, BaseEstimator), {})().__sklearn_tags__()


def test_rules_keep_the_tightest_bound():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2000, 1))
    y = rng.normal(size=2000) * (1 + 5 * x[:, 0])
    found = diagnose.slices(Constant(), x, y, cv="prefit", max_slices=8)
    assert all(rule.count("x0 >") <= 1 and rule.count("x0 <=") <= 1 for rule in found.rules)
    assert found.table["rows"].sum() == 2000
    assert_allclose(found.table["share_of_loss"].sum(), 1.0)


def test_the_same_for_any_number_of_threads():
    X, y = noisy(400)
    one, two = (diagnose.slices(ep.RandomForestRegressor(n_estimators=4), X, y, n_jobs=n) for n in (1, 2))
    assert str(one) == str(two)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"loss": "log_loss"}, ParameterError, "loss='log_loss': LinearRegression has no predict_proba"),
        ({"loss": "zero"}, ParameterError, "loss='zero'"),
        ({"max_slices": 1}, ParameterError, "max_slices=1"),
        ({"min_rows": 90}, DataError, "predicted rows"),
        ({"level": 1.0}, ParameterError, "level=1.0"),
        ({"features": np.ones((3, 1))}, DataError, "features: 3 rows"),
        ({"loss": lambda y, f: 1.0}, ParameterError, "loss: gave shape"),
    ],
)
def test_bad_input(change, error, message):
    X, y = noisy(200)
    with pytest.raises(error, match=message):
        diagnose.slices(ep.LinearRegression(), X, y, **change)


def test_conditions_on_numbers_are_ranges_in_whole_numbers_where_they_are_whole():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hr": rng.integers(0, 24, 3000), "work": rng.integers(0, 2, 3000)})
    rush = (X.hr >= 16) & (X.hr <= 19) & (X.work == 1)
    y = 0.1 * X.hr + rng.normal(size=3000) * np.where(rush, 4.0, 0.1)
    worst = diagnose.slices(ep.LinearRegression(), X, y).worst
    assert worst is not None
    assert all(re.fullmatch(r"(hr|work) (= \d+|(from \d+ to|<=|>=) \d+)", part) for part in worst.split(" and ")), worst


def test_one_slice_is_not_called_a_comparison():
    X = np.random.default_rng(0).integers(0, 2, (60, 1)) * 0.0
    y = np.random.default_rng(1).normal(size=60)
    assert "too alike" in diagnose.slices(ep.LinearRegression(), X, y).verdict
