"""What columns become: the same as scikit-learn's own encoders make of them, in memory or block by block."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import epicycle as ep
from epicycle import TableEncoder, TableModel
from epicycle.automl.tables._columns import is_alike, kind_of_column
from epicycle.automl.tables._dates import as_dates
from epicycle.automl.tables._table_encoder import Coded
from epicycle.automl.tables._tables import read_table
from epicycle.exceptions import DataError, ParameterError

KINDS = {"size": "number", "weight": "number", "colour": "category", "day": "date", "answer": "target"}


@pytest.mark.parametrize("form", ["trees", "linear"])
def test_keeps_the_contract_of_scikit_learn(form):
    check_estimator(ep.TableEncoder(form=form), on_skip=None)


def test_linear_form_is_that_of_scikit_learn(table):
    made = ep.TableEncoder({k: KINDS[k] for k in ("size", "weight", "colour")}, form="linear").fit(table)
    X = made.transform(table)
    names = made.get_feature_names_out().tolist()
    numbers = np.column_stack([table["size"].to_numpy(), table["weight"].to_numpy()])
    known = StandardScaler().fit(numbers)  # spreads are those of the values that are there
    filled = SimpleImputer(strategy="median").fit_transform(numbers)
    assert_allclose(X[:, :2], known.transform(filled), atol=1e-12)
    assert names[2] == "size missing"
    assert (X[:, 2] == np.isnan(numbers[:, 0])).all()
    colours = np.array(table["colour"].to_pylist(), dtype=object)[:, None]
    expected = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(colours[colours[:, 0] != None])  # noqa: E711
    assert_allclose(X[:, 3:], expected.transform(colours))
    sparse = clone(made).set_params(sparse=True).fit(table).transform(table)
    assert_allclose(sparse.toarray()[:, 2:], X[:, 2:])
    assert_allclose(sparse.toarray()[:, :2] - (made.mean_ / made.scale_), X[:, :2], atol=1e-12)


def test_trees_form_keeps_numbers_and_codes_levels(table):
    encoder = ep.TableEncoder(KINDS).fit(table)
    X, names = encoder.transform(table), encoder.get_feature_names_out().tolist()
    assert names == ["size", "weight", "day days", "day month", "day day", "day weekday", "colour"]
    assert encoder.categorical_ == [6]
    assert np.array_equal(X[:, 0], table["size"].to_numpy(), equal_nan=True)
    days = table["day"].to_numpy().astype("datetime64[D]")
    assert np.array_equal(X[:, 2], days.astype(int))
    assert np.array_equal(X[:, 4], days.astype(int) - days.astype("M8[M]").astype("M8[D]").astype(int) + 1)
    assert np.array_equal(X[:, 5], (days.astype(int) + 3) % 7)  # 1970-01-01 was a Thursday, Monday is 0
    codes = [np.nan if c is None else ["blue", "green", "red"].index(c) for c in table["colour"].to_pylist()]
    assert np.array_equal(X[:, 6], codes, equal_nan=True)


@pytest.mark.parametrize("options", [{}, {"form": "linear"}, {"form": "linear", "sparse": True, "max_levels": 2}])
def test_rows_in_the_form_for_trees_give_every_form(table, options):
    trees, other = ep.TableEncoder(KINDS).fit(table), ep.TableEncoder(KINDS, **options).fit(table)
    rows = np.random.default_rng(0).permutation(table.num_rows)[:40]
    made = other.of_coded(Coded(trees, trees.transform(table), rows))
    expected = other.transform(table.take(pa.array(rows)))
    assert type(made) is type(expected)
    made, expected = (m if isinstance(m, np.ndarray) else m.toarray() for m in (made, expected))
    assert np.array_equal(made, expected, equal_nan=True)


@pytest.mark.parametrize("form", ["trees", "linear"])
def test_rows_are_encoded_alike_alone_and_together(table, form):
    encoder = ep.TableEncoder(KINDS, form=form).fit(table)
    whole = encoder.transform(table)
    for start in (0, 17, 200):
        assert np.array_equal(encoder.transform(table.slice(start, 23)), whole[start : start + 23], equal_nan=True)
    order = pa.table({name: table[name] for name in reversed(table.column_names)}).append_column("more", [[1] * 240])
    assert np.array_equal(encoder.transform(order), whole, equal_nan=True)
    assert np.array_equal(encoder.transform(table.to_pandas()), whole, equal_nan=True)


def test_unknown_levels_count_as_missing(table):
    encoder = ep.TableEncoder({"colour": "category"}, form="linear").fit(table)
    other = pa.table({"colour": ["violet", None, "red"]})
    assert encoder.transform(other).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    trees = ep.TableEncoder({"colour": "category"}).fit(table).transform(other)
    assert np.array_equal(trees[:, 0], [np.nan, np.nan, 2], equal_nan=True)


def test_texts_that_are_numbers_or_dates_are_read_as_such():
    texts = pa.table(
        {
            "mixed": ["1.5", " 2 ", "-3e2", "n.a."] * 10 + ["7"] * 50,
            "european": [f"{d:02d}/03/2021" for d in range(1, 29)] * 3 + ["13/04/2021"] * 6,
            "level": ["12", "a", "b"] * 30,
        }
    )
    encoder = ep.TableEncoder().fit(texts)
    assert encoder.columns_ == {"mixed": "category", "european": "date %d/%m/%Y", "level": "category"}
    few = texts.set_column(0, "mixed", pa.array(["1.5", " 2 ", "-3e2", "n.a."] + ["7"] * 86))
    encoder = ep.TableEncoder().fit(few)
    assert encoder.columns_["mixed"] == "number"
    X = encoder.transform(few)
    assert np.array_equal(X[:5, 0], [1.5, 2.0, -300.0, np.nan, 7.0], equal_nan=True)
    assert X[0, 1] == np.datetime64("2021-03-01").astype(int)


def test_types_and_columns_are_checked(table):
    encoder = ep.TableEncoder(KINDS).fit(table)
    with pytest.raises(DataError, match="'weight'"):
        encoder.transform(table.drop_columns(["weight"]))
    wrong = table.set_column(1, "weight", pa.array(["heavy"] * 240))
    with pytest.raises(DataError, match=r"'weight'.*'heavy'.*expected numbers"):
        encoder.transform(wrong)
    with pytest.raises(DataError, match="no column 'size'"):
        ep.TableEncoder(KINDS).fit(table.drop_columns(["size"]))
    assert "size" not in ep.TableEncoder(KINDS, absent="skip").fit(table.drop_columns(["size"])).columns_
    with pytest.raises(ParameterError, match="expected one of number"):
        ep.TableEncoder({"size": "numeral"}).fit(table)
    with pytest.raises(DataError, match="none is left"):
        ep.TableEncoder().fit(pa.table({"a": [1.0] * 30}))


def test_a_model_of_tables(table, tmp_path):
    model = ep.TableModel(ep.GradientBoostingClassifier(n_estimators=20, random_state=0), KINDS)
    with pytest.raises(ep.exceptions.NotFittedError):
        model.predict(table)
    model.fit(table)
    assert model.model_.categorical_features == [6]
    assert model.score(table) > 0.8
    assert model.target == "answer"
    assert model.certificate_ == model.model_.certificate_
    model.save(tmp_path / "m.epi")
    again = ep.load(tmp_path / "m.epi")
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))
    weights = np.arange(240) % 3
    linear = ep.TableModel(ep.LogisticRegression(), KINDS)
    repeated = table.take(pa.array(np.repeat(np.arange(240), weights)))
    assert linear.fit(repeated).encoder_.form == "linear"
    assert not hasattr(ep.TableModel(ep.Ridge()), "predict_proba")


@pytest.mark.parametrize("inner", [ep.Ridge(), ep.LogisticRegression(), ep.DecisionTreeClassifier(random_state=0)])
def test_a_model_of_tables_keeps_the_contract_of_scikit_learn(inner):
    check_estimator(ep.TableModel(inner), on_skip=None)


@pytest.mark.parametrize("kind", [">f8", ">f4", ">i4", ">M8[s]", "longdouble"])
@pytest.mark.parametrize("frame", [False, True])
def test_arrays_in_any_order_of_bytes(kind, frame):
    X = np.random.default_rng(0).integers(0, 100_000, size=(60, 3)).astype("M8[s]" if "M8" in kind else "f4")
    swapped = X.astype(kind)
    if frame:
        X, swapped = pd.DataFrame(X), pd.DataFrame(swapped)
    expected = TableEncoder().fit(X)
    found = TableEncoder().fit(swapped)
    assert found.columns_ == expected.columns_
    assert_array_equal(found.transform(swapped), expected.transform(X))
    y = np.arange(60) % 2
    model = TableModel(ep.LogisticRegression()).fit(swapped, y.astype(">i8"))
    assert_array_equal(model.predict(swapped), TableModel(ep.LogisticRegression()).fit(X, y).predict(X))


@pytest.mark.parametrize("zone", ["", "Z", "+00:00", "+0000"])
@pytest.mark.parametrize("digits", [1, 3, 6, 9])
@pytest.mark.parametrize("between", ["T", " "])
def test_times_with_fractions_of_seconds_stay_times(tmp_path, zone, digits, between):
    times = np.datetime64("2024-03-01T05:06:07") + 3_601 * np.arange(100).astype("m8[s]")
    fraction = "123456789"[:digits]
    texts = [f"{str(t).replace('T', between)}.{fraction}{zone}" for t in times]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"time": t, "x": i / 7, "y": i % 3}) + "\n" for i, t in enumerate(texts)))
    table = read_table(path)
    found = kind_of_column(table["time"], "time")
    assert found.kind == f"date %Y-%m-%d{between}%H:%M:%S"
    parsed = as_dates(table["time"], found.kind.removeprefix("date ")).to_numpy()
    assert_array_equal(parsed, times + np.timedelta64(int(fraction[:6].ljust(6, "0")), "us"))


def test_times_with_fractions_and_zones_are_those_of_greenwich():
    texts = pa.array(["2024-01-01T00:00:00.5+01:30", "2024-01-01T00:00:00", None, "2024-01-01T00:00:00.25-00:30", "x"])
    found = as_dates(texts, "%Y-%m-%dT%H:%M:%S").to_pylist()
    assert [None if t is None else t.isoformat() for t in found] == [
        "2023-12-31T22:30:00.500000",
        "2024-01-01T00:00:00",
        None,
        "2024-01-01T00:30:00.250000",
        None,
    ]


def test_one_scale_keeps_the_sizes_of_columns_of_one_unit():
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 2.0, 10.0] + 5
    table = pa.table({f"x{j}": X[:, j] for j in range(3)})
    found = TableEncoder(form="linear", scale="common").fit_transform(table)
    expected = (X - X.mean(0)) / np.sqrt((X.std(0) ** 2).mean())
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(ParameterError, match="scale='all'; expected 'each' or 'common'"):
        TableEncoder(form="linear", scale="all").fit(table)


def test_columns_of_one_unit_are_found():
    rng = np.random.default_rng(0)
    pixels = {f"x{j}": rng.integers(0, 17, 300).astype(float) for j in range(10)}
    kinds = dict.fromkeys(pixels, "number")
    assert is_alike(pa.table(pixels), {**kinds, "y": "target"})
    for name, values, kind in (
        ("x0", np.full(300, 1e3) * rng.random(300), "number"),
        ("x0", rng.random(300), "date seconds"),
    ):
        assert not is_alike(pa.table({**pixels, name: values}), {**kinds, name: kind})
    few = {name: pixels[name] for name in list(pixels)[:4]}
    assert not is_alike(pa.table(few), dict.fromkeys(few, "number"))
