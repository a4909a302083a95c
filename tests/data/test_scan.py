"""Files give the rows that are in them, whatever their kind and however they are divided; what is wrong is named."""

import itertools
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from epicycle.data import ScanData, as_data, scan
from epicycle.data._scan_data import prefetch
from epicycle.exceptions import DataError

N = 1000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "a": rng.normal(size=N),
            "b": rng.integers(-5, 5, N),
            "c": (rng.integers(-99, 99, N) / 8).astype(np.float32),  # eighths survive being written as text
            "w": rng.uniform(1, 2, N),
            "y": rng.normal(size=N),
            "label": np.array(["red", "green", "blue"])[rng.integers(0, 3, N)],
        }
    )


def write_ipc_stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def write_ipc_file(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=77)


def write_tsv(table, path):
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t"))


def write_csv_gz(table, path):
    with pa.CompressedOutputStream(str(path), "gzip") as sink:
        pa.csv.write_csv(table, sink)


WRITERS = {
    "parquet": lambda t, path: pq.write_table(t, path, row_group_size=130),
    "pq": pq.write_table,
    "csv": lambda t, path: pa.csv.write_csv(t, path),
    "csv.gz": write_csv_gz,
    "tsv": write_tsv,
    "feather": lambda t, path: pa.feather.write_feather(t, str(path)),
    "arrow": write_ipc_file,
    "arrows": write_ipc_stream,
}


def write(table, folder, kind, cuts=(0, 1, 400, 401, N)):
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        WRITERS[kind](table.slice(start, stop - start), folder / f"part-{i}.{kind}")
    return folder / f"part-*.{kind}"


def together(data):
    batches = list(data.batches())
    assert [b.start for b in batches] == np.cumsum([0] + [b.n_rows for b in batches])[:-1].tolist()
    y = None if batches[0].y is None else np.concatenate([b.y for b in batches])
    w = None if batches[0].weight is None else np.concatenate([b.weight for b in batches])
    return np.vstack([b.X for b in batches]), y, w


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("batch_rows", [None, 137])
def test_every_kind_of_file_gives_its_rows(tmp_path, table, kind, batch_rows):
    pattern = write(table, tmp_path, kind)
    files = scan(pattern, target="y", weight="w", columns=["c", "a", "b"], batch_rows=batch_rows)
    data = as_data(files, target="numeric")
    for _ in range(2):  # every pass reads anew
        X, y, w = together(data)
        assert_array_equal(X, np.column_stack([table[c].to_numpy() for c in ("c", "a", "b")]))
        assert_array_equal(y, table["y"].to_numpy())
        assert_array_equal(w, table["w"].to_numpy())
    assert data.n_rows == N
    assert data.feature_names == ("c", "a", "b")
    assert data.dtype == np.float64
    assert next(data.batches()).X.flags.f_contiguous
    assert_array_equal(data.head().X, X[: data.head().n_rows])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_npy(tmp_path, order, dtype):
    Z = np.asarray(np.random.default_rng(0).normal(size=(700, 5)) * 9, dtype, order=order)
    np.save(tmp_path / "a.npy", Z[:300].copy(order=order))
    np.save(tmp_path / "b.npy", Z[300:].copy(order=order))
    files = scan([tmp_path / "a.npy", str(tmp_path / "b.npy")], target=4, batch_rows=64)
    X, y, _ = together(as_data(files, target="numeric"))
    assert_array_equal(X, Z[:, :4])
    assert_array_equal(y, Z[:, 4])
    assert X.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert files.n_rows == 700
    assert files.feature_names is None
    X, y, _ = together(as_data(scan(tmp_path, target=-1, columns=[3, "x1"])))
    assert y is None
    assert_array_equal(X, Z[:, [3, 1]])


def test_all_columns_but_target_and_weight_are_features(tmp_path, table):
    files = scan(write(table.drop_columns("label"), tmp_path, "parquet"), target="y", weight="w")
    assert files.columns == ("a", "b", "c")
    assert files.n_rows == N
    assert "4 files (Parquet), 1,000 rows x 3 features, target y, weight w" in repr(files)
    head = files.head(3)
    assert head.column_names == ["a", "b", "c", "y", "w"]
    assert head["a"].to_pylist() == table["a"].to_pylist()[:3]


def test_float32_stays_float32(tmp_path):
    columns = {"a": np.ones(5, np.float32), "b": np.ones(5, np.float16), "y": np.ones(5)}
    pq.write_table(pa.table(columns), tmp_path / "t.pq")
    data = as_data(scan(tmp_path / "t.pq", target="y"), target="numeric")
    assert data.dtype == data.head().X.dtype == np.float32
    assert data.head().y.dtype == np.float64


def test_blocks_do_not_depend_on_how_files_are_divided(tmp_path, table):
    sizes = []
    for cuts in ((0, N), (0, 3, 900, N)):
        folder = tmp_path / str(len(cuts))
        folder.mkdir()
        files = scan(write(table, folder, "parquet", cuts), columns=["a"], batch_rows=150)
        sizes.append([b.n_rows for b in as_data(files).batches()])
    assert sizes[0] == sizes[1] == [150] * 6 + [100]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_labels(tmp_path, table, kind):
    path = write(table, tmp_path, kind)
    data = as_data(scan(path, target="label", columns=["a"], batch_rows=99), target="labels")
    _, y, _ = together(data)
    assert y.tolist() == table["label"].to_pylist()
    classes = np.array(["blue", "green", "red"])
    _, codes, _ = together(data.encode_target(lambda y: np.searchsorted(classes, y)))
    assert_array_equal(classes[codes], y)
    whole = as_data(scan(path, target="b", columns=["a"]), target="labels")
    assert together(whole)[1].dtype == np.int64


def test_dictionary_labels_and_booleans(tmp_path):
    values = pa.table({"x": pa.array([True, False, True]), "y": pa.array(["u", "v", "u"]).dictionary_encode()})
    pq.write_table(values, tmp_path / "t.parquet")
    X, y, _ = together(as_data(scan(tmp_path / "t.parquet", target="y"), target="labels"))
    assert_array_equal(X, [[1], [0], [1]])
    assert y.tolist() == ["u", "v", "u"]


def test_several_targets(tmp_path, table):
    files = scan(write(table, tmp_path, "parquet"), target=["y", "a"], columns=["c"])
    data = as_data(files, target="numeric", multi_output=True)
    assert (data.n_targets, data.target_is_vector) == (2, False)
    assert_array_equal(together(data)[1], np.column_stack([table["y"], table["a"]]))
    with pytest.raises(DataError, match="y should be a 1d array: the scan has 2 targets"):
        as_data(files, target="numeric")


def test_csv_is_counted_by_the_first_pass_and_may_turn_fractional_late(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,2\n" * 700_000 + "1.5,2.5\n")  # beyond the block from which types are guessed
    files = scan(path, target="y")
    assert files.n_rows is None
    assert "rows not counted" in repr(files)
    X, y, _ = together(as_data(files, target="numeric"))
    assert files.n_rows == 700_001
    assert (X[-1, 0], y[-1]) == (1.5, 2.5)


def readers():
    return [t for t in threading.enumerate() if t.name == "epicycle-reader"]


def test_the_reader_ends_with_its_consumer(tmp_path, table):
    data = as_data(scan(write(table, tmp_path, "parquet"), columns=["a"], batch_rows=10))
    batches = data.batches()
    next(batches)
    assert len(readers()) == 1
    batches.close()
    assert not readers()
    list(data.batches())
    assert not readers()


def test_prefetch_is_bounded_and_passes_errors_on():
    made = []

    def source():
        for i in range(10):
            made.append(i)
            yield i
        raise KeyError("end")

    items = prefetch(source(), depth=2)
    assert next(items) == 0
    assert max(made, default=0) <= 4
    with pytest.raises(KeyError, match="end"):
        list(items)
    assert made == list(range(10))
    assert not readers()


def test_the_index_of_a_pandas_file_is_a_column(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 6]).to_parquet(tmp_path / "t.parquet")
    assert scan(tmp_path / "t.parquet").columns == ("a", "__index_level_0__")


def test_repr_of_the_data(tmp_path, table):
    data = as_data(scan(write(table, tmp_path, "parquet"), columns=["a"]))
    assert isinstance(data, ScanData)
    assert repr(data) == "ScanData(1,000 rows x 1 float64 features)"
