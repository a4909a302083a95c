"""What is wrong with files is said when the scan is made where it can be, otherwise when the rows are read."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from epicycle.data import as_data, scan
from epicycle.exceptions import DataError, DataFileError, DataTypeError, EngineError, ParameterError, ParameterTypeError


@pytest.fixture
def one(tmp_path):
    rng = np.random.default_rng(0)
    columns = {c: rng.normal(size=1000) for c in "abcwy"} | {"label": np.repeat(["u", "v"], 500)}
    pq.write_table(pa.table(columns), tmp_path / "one.parquet")
    return tmp_path / "one.parquet"


def some(p, **arguments):
    return scan(p, columns=["a"], **arguments)


def file(p, name, content):
    p.with_name(name).write_bytes(content)
    return p.with_name(name)


def npy(p, array):
    np.save(p.with_name("t.npy"), array, allow_pickle=True)
    return p.with_name("t.npy")


def folder(p):
    (p.parent / "empty-folder").mkdir()
    return p.parent / "empty-folder"


def dates(p):
    pq.write_table(pa.table({"when": [datetime.date(2020, 1, 1)], "a": [1.0]}), p.with_name("d.parquet"))
    return p.with_name("d.parquet")


BAD_SCANS = {
    "missing file": (lambda p: scan(p.with_name("none.parquet")), DataFileError, ["paths", "none.parquet"]),
    "pattern without a match": (lambda p: scan(p.with_name("no-*.csv")), DataFileError, ["paths", "no-*.csv"]),
    "empty list": (lambda p: scan([]), DataFileError, ["paths", "empty"]),
    "no path": (lambda p: scan(3), ParameterTypeError, ["paths=3"]),
    "list of numbers": (lambda p: scan([3]), ParameterTypeError, ["paths", "int"]),
    "empty folder": (lambda p: scan(folder(p)), DataFileError, ["paths", "empty-folder"]),
    "unknown kind": (lambda p: scan(file(p, "t.xlsx", b"x")), DataFileError, ["t.xlsx", ".parquet"]),
    "damaged Parquet": (lambda p: scan(file(p, "t.parquet", b"PAR1")), DataFileError, ["t.parquet", "Parquet"]),
    "damaged npy": (lambda p: scan(file(p, "t.npy", b"junk")), DataFileError, ["t.npy"]),
    "damaged Arrow": (lambda p: scan(file(p, "t.arrow", b"junk" * 9)), DataFileError, ["t.arrow", "Arrow IPC"]),
    "empty CSV": (lambda p: scan(file(p, "t.csv", b"")), DataFileError, ["t.csv", "CSV"]),
    "vector in npy": (lambda p: scan(npy(p, np.ones(3))), DataFileError, ["t.npy", "two dimensions"]),
    "pickle in npy": (lambda p: scan(npy(p, np.array([[{}]]))), DataFileError, ["t.npy"]),
    "strings in npy": (lambda p: scan(npy(p, np.array([["a", "b"]]))), DataTypeError, ["columns", "'x0'"]),
    "kinds mixed": (lambda p: scan([p, file(p, "t.csv", b"a\n1\n")]), DataFileError, ["paths", "CSV, Parquet"]),
    "no such target": (lambda p: scan(p, target="lable"), DataError, ["target='lable'", "did you mean 'label'"]),
    "no such weight": (lambda p: scan(p, weight="zzz"), DataError, ["weight='zzz'", "it has 6: 'a'"]),
    "no such column": (lambda p: scan(p, columns=["a", "q"]), DataError, ["columns='q'", "one.parquet"]),
    "number for a name": (lambda p: scan(p, target=0), ParameterTypeError, ["target=0", "name of a column"]),
    "number out of range": (lambda p: scan(npy(p, np.ones((2, 2))), target=2), DataError, ["target=2", "2 columns"]),
    "columns as a string": (lambda p: scan(p, columns="a"), ParameterTypeError, ["columns='a'", "list"]),
    "column named twice": (lambda p: scan(p, columns=["a", "a"]), ParameterError, ["columns", "'a'"]),
    "target among columns": (lambda p: some(p, target="a"), ParameterError, ["target", "'a'"]),
    "strings as features": (lambda p: as_data(scan(p, target="y")), DataTypeError, ["columns", "'label'", "string"]),
    "dates as features": (lambda p: scan(dates(p)), DataTypeError, ["columns", "'when'", "date32"]),
    "strings as weight": (lambda p: some(p, weight="label"), DataTypeError, ["weight", "'label'"]),
    "no column left": (lambda p: scan(npy(p, np.ones((2, 1))), target=0), DataError, ["columns", "0 feature(s)"]),
    "batch_rows": (lambda p: scan(p, batch_rows=0), ParameterError, ["batch_rows=0"]),
    "y besides a scan": (lambda p: as_data(some(p), [1], target="numeric"), DataError, ["y", "target="]),
    "weight besides a scan": (lambda p: as_data(some(p), None, [1]), DataError, ["sample_weight", "weight="]),
    "no target": (lambda p: as_data(some(p), target="numeric"), DataError, ["target y is None", "scan(..., target="]),
    "words": (lambda p: as_data(some(p, target="label"), target="numeric"), DataTypeError, ["y", "'label'"]),
}


@pytest.mark.parametrize("kind", BAD_SCANS)
def test_what_is_wrong_is_said_at_once(one, kind):
    make, error, words = BAD_SCANS[kind]
    with pytest.raises(error) as caught:
        make(one)
    for word in words:
        assert word in str(caught.value)


def test_files_with_other_columns_or_types(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "b": [1.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet has no column 'b'"):
        scan(tmp_path)
    with pytest.raises(DataError, match=r"1\.parquet has a column 'b'"):
        scan([tmp_path / "2.parquet", tmp_path / "1.parquet"])
    assert scan(tmp_path, columns=["a"]).n_rows == 2
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(DataTypeError, match=r"'a' of .*2\.parquet is of type string"):
        as_data(scan(tmp_path, columns=["a"]))
    pq.write_table(pa.table({"b": ["x"], "a": [3]}), tmp_path / "2.parquet")  # another order, whole numbers: fine
    X = np.vstack([b.X for b in as_data(scan(tmp_path, columns=["a"])).batches()])
    assert_array_equal(X, [[1], [3]])


BAD_ROWS = {
    "null": ({"a": [1.0, None]}, "numeric", ["NaN", "'a'"]),
    "NaN": ({"a": [1.0, np.nan]}, "numeric", ["X contains NaN", "row 1, column 'a'"]),
    "infinity": ({"a": [1.0, np.inf]}, "numeric", ["X contains infinity", "column 'a'"]),
    "huge integers": ({"a": [1, 2**60]}, "numeric", ["'a'", "2**53"]),
    "NaN target": ({"y": [1.0, np.nan]}, "numeric", ["y contains NaN", "row 1"]),
    "null target": ({"y": [1.0, None]}, "numeric", ["NaN", "'y'"]),
    "null label": ({"y": ["u", None]}, "labels", ["y contains NaN", "'y'"]),
    "continuous label": ({"y": [1.0, 2.5]}, "labels", ["y", "Unknown label type: continuous"]),
    "negative weight": ({"w": [1.0, -2.0]}, "numeric", ["sample_weight", "'w'", "-2", "row 1"]),
    "NaN weight": ({"w": [1.0, np.nan]}, "numeric", ["sample_weight", "NaN"]),
    "zero weights": ({"w": [0.0, 0.0]}, "numeric", ["sample_weight", "zero"]),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows_are_found_when_read(tmp_path, kind):
    columns, target, words = BAD_ROWS[kind]
    pq.write_table(pa.table({"a": [1.0, 2.0], "w": [1.0, 1.0], "y": [1.0, 2.0], **columns}), tmp_path / "t.parquet")
    data = as_data(scan(tmp_path / "t.parquet", target="y", weight="w"), target=target)
    with pytest.raises(DataError) as caught:
        list(data.batches())
    for word in words:
        assert word in str(caught.value)


def test_bad_csv_rows_name_the_file(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 600_000 + "1,oops\n")
    with pytest.raises(DataError, match=r"t\.csv.*oops"):
        list(as_data(scan(tmp_path / "t.csv")).batches())


def test_no_rows(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"0 sample\(s\).*minimum of 1"):
        as_data(scan(tmp_path / "t.parquet"))
    (tmp_path / "t.csv").write_text("a,b\n")  # names alone do not tell types
    with pytest.raises(DataError, match=r"0 sample\(s\).*minimum of 1"):
        list(as_data(scan(tmp_path / "t.csv")).batches())


@pytest.mark.parametrize("change", ["rewritten", "removed", "truncated"])
def test_a_file_that_changes_between_passes_is_named(one, change):
    data = as_data(scan(one, columns=["a", "b"]))
    assert len(list(data.batches())) == 1
    if change == "rewritten":
        pq.write_table(pa.table({"a": [1.0], "b": [1]}), one)
    elif change == "removed":
        one.unlink()
    else:
        one.write_bytes(one.read_bytes()[:5000])
    with pytest.raises(EngineError, match=r"one\.parquet (was changed|has vanished)"):
        list(data.batches())
