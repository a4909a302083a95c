"""Columns of categories, in every container that has them, are the same as columns of text."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import epicycle as ep
from epicycle.automl.checks._data_checks import profile_columns
from epicycle.automl.tables._streams import blocks_of

LEVELS, ANSWERS = ["green", "red", "unused"], ["no", "yes"]


def plain(n=120, seed=0):
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(size=n), rng.choice(LEVELS[:2], n)
    answer = np.where(size + (colour == "red") + 0.3 * rng.normal(size=n) > 0.5, "yes", "no")
    gaps = rng.random(n) < 0.1
    columns = {"size": size, "colour": pa.array(colour.tolist(), mask=gaps), "grade": rng.integers(1, 4, n)}
    return pa.table({**columns, "answer": answer.tolist()})


def as_pandas(table, ordered=False):
    frame = table.to_pandas()
    for name, levels in (("colour", LEVELS), ("answer", ANSWERS), ("grade", [1, 2, 3])):
        frame[name] = pd.Categorical(frame[name], levels, ordered=ordered)
    return frame


def as_polars(table, kinds):
    frame = pl.from_arrow(table).with_columns(pl.col("grade").cast(pl.String))
    return frame.with_columns(**{name: pl.col(name).cast(kind) for name, kind in kinds.items()})


def as_file(table, path, write):
    write(pa.Table.from_pandas(as_pandas(table)), path)
    return path


CONTAINERS = {
    "pandas": lambda t, _: as_pandas(t),
    "pandas ordered": lambda t, _: as_pandas(t, ordered=True),
    "polars Categorical": lambda t, _: as_polars(t, {"colour": pl.Categorical, "answer": pl.Categorical}),
    "polars Enum": lambda t, _: as_polars(t, {"colour": pl.Enum(LEVELS), "answer": pl.Enum(ANSWERS)}),
    "parquet": lambda t, at: as_file(t, at / "t.parquet", pa.parquet.write_table),
    "feather": lambda t, at: as_file(t, at / "t.feather", pa.feather.write_feather),
    "chunks with dictionaries of their own": lambda t, _: pa.concat_tables(
        [pa.Table.from_pandas(as_pandas(t.slice(0, 50))), pa.Table.from_pandas(as_pandas(t.slice(50)))]
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_categories_are_text(container, tmp_path):
    table = plain()
    expected = ep.training.read_parts(table, target="answer")
    parts = ep.training.read_parts(CONTAINERS[container](table, tmp_path), target="answer")
    assert parts.task == "classification"
    assert parts.y_train.tolist() == expected.y_train.tolist()
    profiles = {p.name: p for p in profile_columns(parts.train, parts.roles)[0]}
    assert profiles["colour"].kind == "category"
    assert profiles["colour"].distinct == profiles["answer"].distinct == 2
    kinds = {"size": "number", "colour": "category", "grade": "category", "answer": "target"}
    models = [ep.TableModel(ep.LogisticRegression(), kinds).fit(p.train, p.y_train) for p in (parts, expected)]
    assert np.array_equal(models[0].predict_proba(parts.test), models[1].predict_proba(expected.test))


def test_a_frame_of_categories_trains_and_its_model_predicts_a_file(tmp_path):
    table = plain()
    run = ep.train(as_pandas(table), "answer", time=1, models="logistic")
    assert {p.name: p.kind for p in run.profile} == {
        "size": "number",
        "colour": "category",
        "grade": "category",
        "answer": "target",
    }
    assert run.test.score > 0.7
    pa.csv.write_csv(table, tmp_path / "new.csv")
    (block,) = blocks_of(tmp_path / "new.csv", run.model_.encoder_.types_)
    assert np.array_equal(run.model_.predict_proba(block), run.model_.predict_proba(as_pandas(table)))


def test_categories_that_are_numbers_are_a_target_of_a_regression_and_integer_classes():
    column = pa.chunked_array([pa.array(np.arange(40) % 4).dictionary_encode()])
    table = pa.table({"x": np.random.default_rng(0).normal(size=40), "y": column})
    assert ep.training.read_parts(table, target="y").y_train.dtype == np.int64
    assert ep.training.read_parts(table, target="y", task="regression").y_train.dtype == np.float64
    truth = pa.table({"x": table["x"], "y": pa.array(np.arange(40) % 2 == 0).dictionary_encode()})
    assert ep.training.read_parts(truth, target="y").y_train.dtype == bool


def test_a_category_of_one_level_is_left_out():
    table = plain()
    table = table.append_column("same", pa.array(["a"] * table.num_rows).dictionary_encode())
    (profile,) = [p for p in profile_columns(table, {})[0] if p.name == "same"]
    assert profile.kind == "drop"
