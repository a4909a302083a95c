"""Tables from compressed files, arrays of JSON, files without a header and several files: the same rows from all."""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import epicycle as ep
from epicycle.automl.tables._streams import blocks_of
from epicycle.cli import main
from epicycle.exceptions import DataFileError

N = 60


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a = rng.normal(size=N)
    return pa.table({"a": a, "kind": rng.choice(["x", "y"], N).tolist(), "z": np.where(a > 0, 1, 0)})


@pytest.fixture(scope="module")
def text(table):
    buffer = io.BytesIO()
    pa.csv.write_csv(table, buffer)
    return buffer.getvalue()


def zipped(name, *contents):
    def write(path, content):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__MACOSX/._data", "")
            for inner in (name, *contents):
                archive.writestr(inner, content)

    return write


WRITERS = {
    "t.csv": lambda path, content: path.write_bytes(content),
    "t.csv.gz": lambda path, content: path.write_bytes(gzip.compress(content)),
    "t.csv.bz2": lambda path, content: path.write_bytes(bz2.compress(content)),
    "t.csv.xz": lambda path, content: path.write_bytes(lzma.compress(content)),
    "t.csv.lzma": lambda path, content: path.write_bytes(lzma.compress(content, lzma.FORMAT_ALONE)),
    "t.csv.zip": zipped("inside.csv"),
    "t.zip": zipped("inside.csv"),
    "t.csv.zst": lambda path, content: path.write_bytes(pa.Codec("zstd").compress(content, asbytes=True)),
}


def check(source, table, **options):
    """All rows of a source, at once and block by block."""
    assert ep.training.read_table(source, **options).equals(table)
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    blocks = list(blocks_of(source, types, **options))
    assert pa.concat_tables(blocks, promote_options="permissive").to_pydict() == table.to_pydict()


@pytest.mark.parametrize("name", WRITERS)
def test_compressed_text(name, table, text, tmp_path):
    WRITERS[name](tmp_path / name, text)
    check(tmp_path / name, table)


@pytest.mark.parametrize("name", ["t.feather", "t.arrow", "t.parquet"])
def test_binary_files(name, table, tmp_path):
    write = pa.parquet.write_table if name == "t.parquet" else pa.feather.write_feather
    write(table, tmp_path / name)
    check(tmp_path / name, table)


@pytest.mark.parametrize("name", ["t.json", "t.json.xz", "noname"])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_json(name, indent, table, tmp_path):
    rows = table.to_pylist()
    content = json.dumps(rows, indent=indent).encode()
    (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith("xz") else content)
    check(tmp_path / name, table)


def test_an_array_of_json_with_gaps_and_faults(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"a": 1}, {"a": 2, "b": "x"}, {"b": null}]')
    assert ep.training.read_table(path).to_pydict() == {"a": [1, 2, None], "b": [None, "x", None]}
    for content in ('[{"a": 1}, 2]', '[{"a": 1}', '[{"a": 1}, {"a": "x"}]', "[]"):
        path.write_text(content)
        with pytest.raises(DataFileError, match=r"t\.json"):
            ep.training.read_table(path)
    path.write_text('{"a": 1}\n{"a": 2}\n')  # an object in each line, as before
    assert ep.training.read_table(path)["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.xz", b"\xfd7zXZ\x00 and then nothing sensible"),
        ("t.csv.xz", lzma.compress(b"a,b\n1,2\n" * 999)[:-20]),
        ("t.csv.zip", b"PK\x03\x04 and then nothing sensible"),
        ("t.csv.gz", b"no gzip"),
    ],
)
def test_damaged_files_are_refused_by_name(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=name):
        ep.training.read_table(tmp_path / name)
    with pytest.raises(DataFileError, match=name):
        list(blocks_of(tmp_path / name, {"a": "double", "b": "double"}))


def test_an_archive_of_several_files_is_refused(text, tmp_path):
    zipped("one.csv", "two.csv")(tmp_path / "t.zip", text)
    with pytest.raises(DataFileError, match="holds 2 files; expected one"):
        ep.training.read_table(tmp_path / "t.zip")


def test_several_files_are_one_table(table, text, tmp_path):
    parts = [table.slice(0, 25), table.slice(25)]
    pa.csv.write_csv(parts[0], tmp_path / "part-1.csv")
    pa.parquet.write_table(parts[1].select(["z", "a", "kind"]), tmp_path / "part-2.parquet")
    check([tmp_path / "part-1.csv", tmp_path / "part-2.parquet"], table)
    check(str(tmp_path / "part-*"), table)
    with pytest.raises(DataFileError, match="no file has a name like this"):
        ep.training.read_table(str(tmp_path / "none-*.csv"))
    (tmp_path / "part-3.csv").write_text("a,other\n1,2\n")
    with pytest.raises(DataFileError, match=r"part-3\.csv: other columns than .*part-1\.csv: 'kind', 'other', 'z'"):
        ep.training.read_table(str(tmp_path / "part-*"))
    (tmp_path / "odd[1].csv").write_bytes(text)  # a name that is there is no pattern
    check(str(tmp_path / "odd[1].csv"), table)


def test_files_without_a_header(table, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(text.partition(b"\n")[2])
    check(tmp_path / "t.csv", table.rename_columns(["x0", "x1", "x2"]), header=False)
    command = ["train", "t.csv", "--no-header", "--time", "1", "--models", "decisiontree", "--out", "run"]
    assert main(command) == 0
    assert "60 rows x 3 columns; target x2" in capsys.readouterr().out
    assert "header=False" in (tmp_path / "run" / "train.py").read_text()
    assert main(["predict", "run/model.epi", "t.csv", "--no-header"]) == 0
    assert capsys.readouterr().out.count("\n") == 61
    for command in (["report", "run/model.epi", "t.csv", "--out", "r"], ["cv", "run/model.epi", "t.csv"]):
        assert main([*command, "--no-header"]) == 0
    assert main(["compare", "run/model.epi", "run/model.epi", "--data", "t.csv", "--no-header"]) == 0
    assert "cannot be distinguished on 60 rows" in capsys.readouterr().out


def test_a_first_line_of_numbers_is_said_to_be_no_header(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("0,0,1\n" + "1,2,3\n" * 30)
    with pytest.raises(DataFileError, match="--no-header"):
        ep.training.read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("5.1,-2e3,red\n" + "1,2,3\n2,1,4\n" * 30)
    parts = ep.training.read_parts(tmp_path / "t.csv")
    assert ["--no-header" in issue.text for issue in parts.warned if issue.kind == "header"] == [True]
    (tmp_path / "t.csv").write_text("2019,2020,name,place\n" + "1,2,3,4\n2,1,4,3\n" * 30)
    assert [issue for issue in ep.training.read_parts(tmp_path / "t.csv").warned if issue.kind == "header"] == []


def test_standard_input_without_a_header(table, text, monkeypatch):
    content = text.partition(b"\n")[2]
    for read in (
        lambda: ep.training.read_table("-", header=False),
        lambda: next(blocks_of("-", {"x0": "double", "x1": "string", "x2": "int64"}, header=False)),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read().to_pydict() == table.rename_columns(["x0", "x1", "x2"]).to_pydict()
