"""Files that cannot be trained on: one line that says why, exit code 2, no traceback, nothing half-written."""

import errno
import json
import os
import time

import numpy as np
import pytest

from epicycle.cli import main

ROWS = "".join(f"{i % 7},{(i * 37) % 11},{'ab'[i % 2]}\n" for i in range(40))


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


CASES = {
    "empty": ("", "empty"),
    "blank": (" \n\n \n", "empty"),
    "header only": ("a,b,y\n", "no rows"),
    "one row": ("a,b,y\n1,2,3\n", "1 row"),
    "ragged": (f"a,b,y\n{ROWS}1,2,3,4,5\n", "Expected 3 columns, got 5"),
    "wrong encoding": (f"a,b,y\n{ROWS}".encode() + b"1,2,caf\xe9\n", "UTF-8"),
    "utf-16": (f"a,b,y\n{ROWS}".encode("utf-16"), "UTF-16"),
    "one column": ("y\n" + "1\n" * 30, "one column"),
    "duplicate names": (f"a,a,y\n{ROWS}", "'a'"),
    "no names": (f",,y\n{ROWS}", "no name"),
    "constant target": ("a,b,y\n" + "1,2,3\n2,3,3\n" * 20, "nothing to predict"),
    "missing target": ("a,b,y\n" + "1,2,\n2,3,NA\n" * 20, "all values are missing"),
    "names as target": ("a,b,y\n" + "".join(f"{i % 5},{i % 3},name{i}\n" for i in range(60)), "too many for classes"),
    "constant features": ("a,b,y\n" + "1,,1\n1,,2\n" * 20, "no column is left"),
    "unclosed quote": (f'a,b,y\n{ROWS}1,"2,x\n{ROWS}', "cannot be read"),
    "binary": (bytes(range(256)) * 40, "binary"),
    "broken parquet": (b"PAR1" + b"\x00" * 400, "cannot be read"),
    "broken json": ('{"a": 1, "y": 2}\n{"a": \n', "cannot be read"),
}


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    """Run train on a file and check how it ends."""
    monkeypatch.chdir(tmp_path)

    def check(path, said, *options):
        before = sorted(p.name for p in tmp_path.iterdir())
        assert main(["train", str(path), "--time", "1", *options]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("epicycle: ")
        assert captured.err.count("\n") == 1
        assert "Traceback" not in captured.err
        assert said in captured.err
        assert sorted(p.name for p in tmp_path.iterdir()) == before

    return check


@pytest.mark.parametrize("case", CASES)
def test_bad_content(case, tmp_path, refused):
    content, said = CASES[case]
    path = tmp_path / {"broken parquet": "t.parquet", "broken json": "t.jsonl"}.get(case, "t.csv")
    write(path, content)
    refused(path, said)


def test_too_many_columns(tmp_path, refused):
    names = [f"c{i}" for i in range(10_000)]
    write(tmp_path / "wide.csv", ",".join(names) + "\n" + (",".join(["1"] * 10_000) + "\n") * 3)
    refused(tmp_path / "wide.csv", "10,000 columns")


def test_paths_that_cannot_be_read(tmp_path, refused, monkeypatch):
    refused(tmp_path / "nowhere.csv", "no such file")
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "folder.csv", "is a directory")
    write(tmp_path / "secret.csv", f"a,b,y\n{ROWS}")
    (tmp_path / "secret.csv").chmod(0)
    real = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: real(p, mode) and not str(p).endswith("secret.csv"))
    refused(tmp_path / "secret.csv", "no permission")


def test_wrong_columns_are_named(tmp_path, refused):
    write(tmp_path / "t.csv", f"alpha,b,y\n{ROWS}")
    refused(tmp_path / "t.csv", "did you mean 'alpha'", "--target", "alhpa")
    refused(tmp_path / "t.csv", "groups='g'", "--groups", "g")
    refused(tmp_path / "t.csv", "weight='w'", "--weight", "w")
    refused(tmp_path / "t.csv", "task='regression'", "--task", "regression")


def test_large_garbage_is_refused_at_once(tmp_path, refused):
    path = tmp_path / "garbage.csv"
    with path.open("wb") as file:
        file.truncate(2 << 30)  # two gigabytes of zeros, which take no room
    began = time.perf_counter()
    refused(path, "binary")
    rng = np.random.default_rng(0)
    with path.open("r+b") as file:
        file.write(rng.integers(1, 256, 1 << 19, dtype=np.uint8).tobytes())
    refused(path, "garbage.csv")
    with path.open("r+b") as file:
        file.write(b"x" * (1 << 19))  # text, and one line without end
    refused(path, "first line")
    assert time.perf_counter() - began < 60


def test_where_the_results_cannot_go(tmp_path, refused, monkeypatch):
    write(tmp_path / "t.csv", f"a,b,y\n{ROWS}")
    refused(tmp_path / "t.csv", "does not exist", "--out", str(tmp_path / "no" / "where"))
    refused(tmp_path / "t.csv", "is a file", "--out", str(tmp_path / "t.csv"))

    def full(path, chunks):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("epicycle.automl._training_run.write_atomically", full)
    refused(tmp_path / "t.csv", "No space left", "--models", "decisiontree")


def test_odd_but_sound_files_are_read(tmp_path, capsys, monkeypatch):
    """A byte order mark, semicolons, quotes with line ends, blank lines, dates, a column without values."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["\ufeffday;what;empty;mixed;comma;y"]
    for i in range(60):
        what = '"two\nlines; ""quoted"""' if i % 2 else "plain"
        lines.append(f"2024-01-{rng.integers(1, 29):02d};{what};;{'?' if i % 9 == 0 else i % 4};{i % 5},5;{i % 2}")
    write(tmp_path / "odd.csv", "\r\n".join(lines) + "\r\n\r\n")
    assert main(["train", "odd.csv", "--time", "1", "--models", "decisiontree", "--out", "run"]) == 0
    said = capsys.readouterr().out
    assert "empty: all values are missing" in said
    kinds = {
        column["name"]: column["kind"]
        for column in json.loads((tmp_path / "run" / "report.json").read_text())["columns"]
    }
    assert kinds == {
        "day": "date",
        "what": "category",
        "empty": "drop",
        "mixed": "number",
        "comma": "number",
        "y": "target",
    }
    assert "60 rows x 6 columns" in said
