"""``epicycle train`` on every kind of source and task of the guide: it trains, and the model predicts the source."""

import csv
import gzip
import io
import json
import lzma
import sqlite3
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import epicycle as ep
from epicycle.cli import main

N = 120
TRAIN = ["--time", "0.6", "--models", "ridge"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N))
    shop = rng.choice(["north", "south", "west"], N)
    y = 2 * a - b + (shop == "north") + 0.3 * rng.normal(size=N)
    return pa.table({"a": a, "b": b, "shop": shop.tolist(), "y": y})


def text_of(table, header=True):
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(include_header=header))
    return sink.getvalue()


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def in_folder(folder, table, where):
    """Halves of the table in two files of a folder."""
    (folder / "part").mkdir()
    (folder / "part" / "1.csv").write_bytes(text_of(table.slice(0, N // 2)))
    pa.parquet.write_table(table.slice(N // 2), folder / "part" / "2.parquet")
    return str(folder / where)


def as_zip(folder, table):
    with zipfile.ZipFile(folder / "t.zip", "w") as archive:
        archive.writestr("inside.csv", text_of(table))
    return str(folder / "t.zip")


def as_sqlite(folder, table):
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute("CREATE TABLE sales (a REAL, b REAL, shop TEXT, y REAL)")
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", [tuple(r.values()) for r in table.to_pylist()])
    connection.close()
    return f"{folder / 't.db'}::SELECT * FROM sales WHERE shop <> 'nowhere'"


def as_duckdb(folder, table):
    duckdb = pytest.importorskip("duckdb")
    pa.parquet.write_table(table, folder / "t.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE sales AS SELECT * FROM '{folder / 't.parquet'}'")
    return f"{folder / 't.duckdb'}::sales"


def written(name, content):
    def make(folder, table):
        (folder / name).write_bytes(content(table))
        return str(folder / name)

    return make


def as_feather(folder, table):
    pa.feather.write_feather(table, folder / "t.feather")
    return str(folder / "t.feather")


SOURCES = {
    "xz": written("t.csv.xz", lambda table: lzma.compress(text_of(table))),
    "zst": written("t.csv.zst", lambda table: zstd(text_of(table))),
    "zip": as_zip,
    "JSON array": written("t.json", lambda table: json.dumps(table.to_pylist()).encode()),
    "feather": as_feather,
    "SQLite": as_sqlite,
    "DuckDB": as_duckdb,
    "folder": lambda folder, table: in_folder(folder, table, "part"),
    "pattern": lambda folder, table: in_folder(folder, table, "part/*"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_trains_and_is_predicted(kind, table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = SOURCES[kind](tmp_path, table)
    assert main(["train", source, "--target", "y", *TRAIN, "--out", "run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == {"train": 96, "test": 24}
    assert found["test"]["score"] > 0.9
    assert main(["predict", "run/model.epi", source, "--out", "said.csv"]) == 0
    with open("said.csv") as file:
        said = [float(row["prediction"]) for row in csv.DictReader(file)]
    assert np.corrcoef(said, table["y"].to_numpy())[0, 1] > 0.95


@pytest.mark.slow
def test_rows_without_a_header_and_compressed_standard_input(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = gzip.compress(text_of(table, header=False))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["train", "-", "--no-header", "--target", "x3", *TRAIN, "--out", "run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["target"] == "x3"
    assert found["test"]["score"] > 0.9


def trained(table, capsys, *options):
    """metrics.json of a run on a table."""
    pa.parquet.write_table(table, "t.parquet")
    assert main(["train", "t.parquet", *options, "--out", "run", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "column", "how"),
    [("--group", "shop", "by groups"), ("--time-column", "day", "in order of time"), ("--weight", "w", "at random")],
)
def test_columns_with_a_part_of_their_own(option, column, how, table, tmp_path, capsys, monkeypatch):
    """Groups and times decide the split, weights weigh; groups and weights are no features."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    day = np.datetime64("2024-01-01") + rng.permutation(N).astype("timedelta64[D]")
    given = table.append_column("day", pa.array(day.astype("datetime64[s]"))).append_column(
        "w", pa.array(rng.random(N))
    )
    found = trained(given, capsys, "--target", "y", option, column, *TRAIN)
    assert found["split"] == how
    with open("run/predictions.csv") as file:
        rows = [int(row["row"]) for row in csv.DictReader(file)]
    held = np.isin(np.arange(N), rows)
    if column == "shop":
        shops = np.array(given["shop"].to_pylist())
        assert not set(shops[held]) & set(shops[~held])
    elif column == "day":
        assert day[~held].max() < day[held].min()
    else:
        model = ep.load("run/model.epi")
        assert "w" not in model.encoder_.columns_
        weighted = ep.TableModel(ep.RidgeCV(), model.columns, form="linear")
        parts = ep.training.read_parts("t.parquet", target="y", weight="w")
        weighted.fit(parts.train, parts.y_train, sample_weight=parts.weight_train)
        assert np.allclose(weighted.predict(given), model.predict(given))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "skewed", "two classes", "several classes"])
def test_every_task_trains_with_the_methods_that_suit_it(kind, table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    mean = table["y"].to_numpy()
    y, method, task = {
        "counts": (rng.poisson(np.exp(0.6 * mean)), "poisson", "regression"),
        "skewed": (np.exp(mean + 2), "RidgeCV of the logarithm", "regression"),
        "two classes": (np.where(mean > 0, "yes", "no").tolist(), "logistic", "classification"),
        "several classes": (np.digitize(mean, [-1, 1]), "logistic", "classification"),
    }[kind]
    given = table.drop_columns(["y"]).append_column("z", pa.array(y))
    options = ["--models", method, "--task", task]
    found = trained(given, capsys, "--target", "z", "--time", "0.8", *options)
    assert found["task"] == task
    assert found["baseline"]["test"] < found["test"]["score"]
    names = {"counts": "PoissonRegression", "skewed": "RidgeCV of the logarithm"}
    assert found["model"].startswith(names.get(kind, "LogisticRegression"))
