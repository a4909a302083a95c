"""Folders, databases, spreadsheets and compressed standard input as tables; addresses of networks are refused."""

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import epicycle as ep
from epicycle.automl.tables._streams import blocks_of
from epicycle.automl.tables._tables import read_table
from epicycle.cli import main

TABLE = pa.table({"n": [1, 2, 3, 4], "x": [0.5, None, 2.0, 3.25], "word": ["a", "b", None, "d e"]})


def equal(found, expected=TABLE):
    return found.to_pydict() == expected.to_pydict()


def in_blocks(source):
    blocks = list(blocks_of(source, {"n": "int64", "x": "double", "word": "string"}))
    return pa.concat_tables(block.cast(TABLE.schema) for block in blocks)


def test_a_folder_is_one_table(tmp_path):
    (tmp_path / ".hidden.csv").write_text("nonsense")
    (tmp_path / "README.md").write_text("no table")
    pa.parquet.write_table(TABLE.slice(0, 3), tmp_path / "a.parquet")
    pa.csv.write_csv(TABLE.slice(3), tmp_path / "b.csv")
    for source in (tmp_path, str(tmp_path)):
        assert equal(read_table(source))
    assert equal(in_blocks(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ep.exceptions.DataFileError, match="directory without tables"):
        read_table(tmp_path / "empty")


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "things.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE things (n INTEGER, x REAL, word TEXT)")
        connection.executemany("INSERT INTO things VALUES (?, ?, ?)", [tuple(r.values()) for r in TABLE.to_pylist()])
        connection.execute('CREATE TABLE "odd ""name" (a, b)')
        connection.execute('INSERT INTO "odd ""name" VALUES (1, \'one\'), (2.5, 2)')
    connection.close()
    return path


def test_sqlite(database):
    assert equal(read_table(f"{database}::things"))
    assert equal(in_blocks(f"{database}::things"))
    assert read_table(f"{database}::SELECT n, 2 * x AS y FROM things WHERE n > 2").to_pydict() == {
        "n": [3, 4],
        "y": [4.0, 6.5],
    }
    assert read_table(f'{database}::odd "name').to_pydict() == {"a": [1.0, 2.5], "b": ["one", "2"]}
    for part, words in (
        ("", "several tables"),
        ("::nothing", "no table 'nothing'"),
        ("::SELECT y FROM things", "no such column"),
        ("::", "expected the name of a table"),
    ):
        with pytest.raises(ep.exceptions.DataFileError, match=words):
            read_table(f"{database}{part}")
    before = database.read_bytes()
    with pytest.raises(ep.exceptions.DataFileError):
        read_table(f"{database}::WITH t AS (SELECT 1) DELETE FROM things")
    assert database.read_bytes() == before


def test_duckdb(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "things.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE things AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(n, word)")
    assert read_table(path).to_pydict() == {"n": [1, 2], "word": ["a", "b"]}
    assert read_table(f"{path}::SELECT sum(n) AS s FROM things").to_pydict() == {"s": [3]}
    with pytest.raises(ep.exceptions.DataFileError, match="no table"):
        read_table(f"{path}::nothing")
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(ep.exceptions.DataFileError, match="pip install"):
        read_table(path)


def sheet_cell(column, row, value):
    place = f'r="{"ABC"[column]}{row + 1}"'
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c {place}><v>{value}</v></c>"


def write_xlsx(path, rows):
    """A workbook of one sheet, by the letters of the format."""
    space = "http://schemas.openxmlformats.org"
    cells = ["".join(sheet_cell(j, i, value) for j, value in enumerate(row)) for i, row in enumerate(rows)]
    lines = "".join(f'<row r="{i + 1}">{found}</row>' for i, found in enumerate(cells))
    kind = f"{space}/officeDocument/2006/relationships"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'spreadsheetml.sheet.main+xml"/><Override PartName="/xl/s1.xml" ContentType="application/vnd.'
        'openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{space}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{space}/spreadsheetml/2006/main" xmlns:r="{kind}"><sheets>'
        '<sheet name="things" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{space}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{kind}/worksheet" Target="s1.xml"/></Relationships>',
        "xl/s1.xml": f'<worksheet xmlns="{space}/spreadsheetml/2006/main"><sheetData>{lines}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')


def write_ods(path, rows):
    names = "".join(f' xmlns:{k}="urn:oasis:names:tc:opendocument:xmlns:{k}:1.0"' for k in ("office", "table", "text"))

    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"><text:p/></table:table-cell>'

    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
        archive.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{space}"><manifest:file-entry manifest:full-path="/" '
            'manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content{names}><office:body><office:spreadsheet><table:table table:name="things">'
            f"{lines}</table:table></office:spreadsheet></office:body></office:document-content>",
        )


@pytest.mark.parametrize(("suffix", "write"), [("xlsx", write_xlsx), ("ods", write_ods)])
def test_spreadsheets(suffix, write, tmp_path, monkeypatch):
    pytest.importorskip("python_calamine")
    path = tmp_path / f"things.{suffix}"
    write(path, [TABLE.column_names, *(list(row.values()) for row in TABLE.to_pylist())])
    for source in (path, f"{path}::things"):
        assert equal(read_table(source))
    assert equal(in_blocks(path))
    assert read_table(path, header=False).column_names == ["x0", "x1", "x2"]
    with pytest.raises(ep.exceptions.DataFileError, match="no sheet 'other'; its sheets: things"):
        read_table(f"{path}::other")
    (tmp_path / f"broken.{suffix}").write_bytes(path.read_bytes()[:200])
    with pytest.raises(ep.exceptions.DataFileError, match="cannot be read"):
        read_table(tmp_path / f"broken.{suffix}")
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(ep.exceptions.DataFileError, match="pip install"):
        read_table(path)


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_compressed_standard_input(compress, monkeypatch):
    text = io.BytesIO()
    pa.csv.write_csv(TABLE, text)
    content = compress(text.getvalue())

    class Input:
        buffer: io.BytesIO

    for read in (read_table, in_blocks):
        Input.buffer = io.BytesIO(content)
        monkeypatch.setattr("sys.stdin", Input)
        assert equal(read("-"))
    Input.buffer = io.BytesIO(content[:-9])
    with pytest.raises(ep.exceptions.DataFileError, match="standard input"):
        read_table("-")


def test_addresses_are_refused_in_plain_words(capsys):
    for address in ("https://example.org/data.csv", "s3://bucket/data.parquet", "ftp://host/x.csv"):
        with pytest.raises(ep.exceptions.DataError, match=r"is an address of a network .*Download it first"):
            read_table(address)
        assert main(["train", address]) == 2
        assert "Download it first" in capsys.readouterr().err


def test_a_database_trains_and_predicts(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    iris = read_table("iris")
    with sqlite3.connect("iris.db") as connection:
        connection.execute("CREATE TABLE flowers (a REAL, b REAL, c REAL, d REAL, species TEXT)")
        rows = [tuple(row.values()) for row in iris.to_pylist()]
        connection.executemany("INSERT INTO flowers VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    assert main(["train", "iris.db::flowers", "--time", "2", "--models", "logistic", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["predict", "run/model.epi", "iris.db::SELECT * FROM flowers LIMIT 7"]) == 0
    assert len(capsys.readouterr().out.strip().splitlines()) == 8
