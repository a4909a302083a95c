"""Categories by value: learnt, kept, found again, refused where they cannot be."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.data._categories import LevelEncoder
from epicycle.exceptions import DataError, DataTypeError, EpicycleWarning, ParameterError

COLOURS = np.array(["blue", "green", "red", "white"])


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    colour = COLOURS[rng.integers(0, 4, 600)]
    x = rng.normal(size=600)
    effect = {"blue": 3.0, "green": -1.0, "red": 3.5, "white": -2.0}
    return colour, x, np.array([effect[c] for c in colour]) + x + 0.1 * rng.normal(size=600)


def frame(kind, colour, x):
    if kind == "pandas":
        return pd.DataFrame({"c": pd.Categorical(colour), "x": x}, index=np.arange(len(x))[::-1] * 7)
    if kind == "polars":
        return pl.DataFrame({"c": pl.Series(colour.tolist(), dtype=pl.Categorical), "x": x})
    if kind == "polars enum":
        return pl.DataFrame({"c": pl.Series(colour.tolist(), dtype=pl.Enum(["white", "red", "green", "blue"])), "x": x})
    return pa.table({"c": pa.array(colour.tolist()).dictionary_encode(), "x": x})


def fitted(kind, problem, **options):
    colour, x, y = problem
    return GradientBoostingRegressor(n_estimators=40, **options).fit(frame(kind, colour, x), y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars enum", "arrow"])
def test_every_frame_gives_the_same_model(problem, kind):
    colour, x, y = problem
    model = fitted(kind, problem)
    assert_array_equal(model.categories_[0], COLOURS)
    assert_array_equal(
        model.predict(frame(kind, colour, x)), fitted("pandas", problem).predict(frame("pandas", colour, x))
    )
    assert model.score(frame(kind, colour, x), y) > 0.98


def test_levels_are_found_by_value_whatever_their_codes(problem):
    colour, x, _ = problem
    model = fitted("pandas", problem)
    expected = model.predict(frame("pandas", colour, x))
    reordered = pd.DataFrame(
        {"c": pd.Categorical(colour, categories=["red", "unused", "white", "green", "blue"]), "x": x}
    )
    assert_array_equal(model.predict(reordered), expected)
    some = pd.DataFrame({"c": pd.Categorical(["white", "red"]), "x": [0.0, 0.0]})  # other codes altogether
    assert_allclose(model.predict(some), [-2.0, 3.5], atol=0.4)
    assert_array_equal(model.predict(frame("polars", colour, x)), expected)


def test_two_levels_of_like_effect_stay_together(problem):
    colour, x, y = problem
    model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, max_leaf_nodes=2).fit(
        frame("pandas", colour, x), y
    )
    p = dict(zip(colour, model.predict(frame("pandas", colour, x)), strict=True))
    assert p["blue"] == p["red"] != p["green"] == p["white"]


def test_a_bare_array_is_no_frame(problem):
    model = fitted("pandas", problem)
    with pytest.raises(DataTypeError, match=r"learnt categories from a frame.*X is ndarray"):
        model.predict(np.zeros((3, 2)))


@pytest.mark.parametrize("dtype", [object, "str", "string"])
@pytest.mark.parametrize("make", [ep.DecisionTreeClassifier, ep.GradientBoostingClassifier])
def test_columns_of_text_get_a_hint_that_works(problem, make, dtype):
    X = pd.DataFrame({"c": pd.Series(problem[0], dtype=dtype), "x": problem[1]})
    y = np.arange(600) % 2
    with pytest.raises(DataTypeError, match=r"column 'c'.*expected numbers.*\.astype\(\"category\"\)"):
        make().fit(X, y)
    assert make().fit(X.assign(c=X["c"].astype("category")), y).n_features_in_ == 2


def test_unknown_levels_count_as_missing_or_are_refused(problem):
    _, x, y = problem
    colour = pd.Series(problem[0]).where(np.arange(600) % 5 > 0)
    X = pd.DataFrame({"c": colour.astype("category"), "x": x})
    new = pd.DataFrame({"c": pd.Categorical(["violet", None]), "x": [0.0, 0.0]})
    model = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    predicted = model.predict(new)
    assert predicted[0] == predicted[1]
    strict = GradientBoostingRegressor(n_estimators=20, handle_unknown="error").fit(X, y)
    with pytest.raises(DataError, match="'c' has levels that the fit did not see: 'violet'"):
        strict.predict(new)
    assert_array_equal(strict.predict(X), model.predict(X))


def test_a_column_of_another_type_is_refused(problem):
    model = fitted("pandas", problem)
    with pytest.raises(DataTypeError, match=r"'c' holds ints such as 1; its levels at fit were strs such as 'blue'"):
        model.predict(pd.DataFrame({"c": pd.Categorical([1, 2]), "x": [0.0, 0.0]}))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_in_another_order_are_said_to_be_so(problem, kind):
    colour, x, _ = problem
    model, table = fitted(kind, problem), frame(kind, colour, x)
    turned = table.select(["x", "c"]) if kind != "pandas" else table[["x", "c"]]
    with pytest.raises(DataError, match=r"feature names should match.*\n.*same order"):
        model.predict(turned)


def test_columns_can_be_named_numbered_or_masked(problem):
    colour, x, y = problem
    strings = pd.DataFrame({"c": colour, "x": x})
    expected = fitted("pandas", problem).predict(frame("pandas", colour, x))
    for asked in (["c"], [0], [True, False]):
        model = GradientBoostingRegressor(n_estimators=40, categorical_features=asked).fit(strings, y)
        assert_array_equal(model.predict(strings), expected)
    with pytest.raises(DataTypeError, match="column 'c'"):
        GradientBoostingRegressor().fit(strings, y)
    with pytest.raises(DataTypeError, match="column 'c'"):
        GradientBoostingRegressor(categorical_features=None).fit(frame("pandas", colour, x), y)
    for wrong, message in ((["d"], "names 'd'"), ([2], "column 2; X has 2"), ([True], "mask of 1"), ([0.5], "0.5")):
        with pytest.raises(ParameterError, match=message):
            GradientBoostingRegressor(categorical_features=wrong).fit(strings, y)


def test_numbers_in_an_array_can_be_levels():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.choice([-3.5, 10.0, 2.0, 700.0], 500), rng.normal(size=500)])
    y = np.where(np.isin(X[:, 0], [-3.5, 700.0]), 1, 0)
    model = GradientBoostingClassifier(n_estimators=2, max_leaf_nodes=2, categorical_features=[0]).fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert_array_equal(model.categories_[0], [-3.5, 2.0, 10.0, 700.0])
    assert_array_equal(X[:3], X[:3].copy())


def test_levels_that_are_their_own_codes_are_not_copied():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, 300), rng.normal(size=300)]).astype(float)
    X[7, 0] = np.nan
    assert LevelEncoder({0: np.arange(5.0)}).encode(X) is X
    other = LevelEncoder({0: np.array([0.0, 2.0, 3.0, 4.0])}).encode(X)  # 1 is unknown, 2 has the code 1
    assert_array_equal(other[:, 0], np.array([0, np.nan, 1, 2, 3, np.nan])[np.nan_to_num(X[:, 0], nan=5).astype(int)])
    assert_array_equal(other[:, 1], X[:, 1])
    assert X[7, 0] != X[7, 0]


def test_more_levels_than_bins():
    rng = np.random.default_rng(2)
    code = np.r_[rng.integers(0, 300, 6000), np.arange(300, 350)]
    X = pd.DataFrame({"c": pd.Categorical([f"level {c}" for c in code])})
    y = rng.normal(size=350)[code]
    with pytest.warns(EpicycleWarning, match=r"'c' has 350 levels; the 255 most frequent"):
        model = GradientBoostingRegressor(n_estimators=60, min_samples_leaf=1, categorical_smoothing=0.0).fit(X, y)
    assert len(model.categories_[0]) == 255
    assert model.score(X, y) > 0.7


def test_levels_survive_the_file(problem, tmp_path):
    colour, x, _ = problem
    model = fitted("polars", problem)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert_array_equal(loaded.categories_[0], COLOURS)
    assert_array_equal(loaded.predict(frame("pandas", colour, x)), model.predict(frame("pandas", colour, x)))


def test_a_column_of_nothing_but_missing_levels():
    X = pd.DataFrame({"c": pd.Categorical([None] * 100, categories=["a"]), "x": np.arange(100.0)})
    model = GradientBoostingRegressor(n_estimators=5).fit(X, X["x"])
    assert model.feature_importances_.tolist() == [0.0, 1.0]
