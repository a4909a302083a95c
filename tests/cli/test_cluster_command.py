"""epicycle cluster: what it writes, prints and exits with, and that other commands take its model."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from epicycle.cli import main

FILES = ["cluster.py", "clusters.csv", "clusters.json", "model.epi", "report.html", "report.json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CSV file of two kinds of rows, and two folders of the same command."""
    folder = tmp_path_factory.mktemp("clusters")
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 15)
    table = pa.table(
        {
            "a": 8.0 * kind + rng.normal(size=30),
            "b": 8.0 * kind + rng.normal(size=30),
            "kind": kind.astype(str).tolist(),
        }
    )
    pa.csv.write_csv(table, folder / "data.csv")
    for name in ("one", "two"):
        command = ["cluster", str(folder / "data.csv"), "--k", "2", "--labels", "kind", "--out", str(folder / name)]
        assert main([*command, "--seed", "3", "--models", "kmeans,agglom", "--json"]) == 0
    return folder


def test_all_files_repeat_byte_for_byte(folder):
    assert sorted(p.name for p in (folder / "one").iterdir()) == FILES
    for name in FILES:
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


def test_predict_takes_the_model_and_gives_the_same_clusters(folder, capsys):
    assert main(["predict", str(folder / "one" / "model.epi"), str(folder / "data.csv")]) == 0
    predicted = capsys.readouterr().out.split()
    written = [line.split(",")[1] for line in (folder / "one" / "clusters.csv").read_text().splitlines()]
    assert predicted[1:] == written[1:]
    assert main(["predict", str(folder / "one" / "model.epi"), str(folder / "data.csv"), "--proba"]) == 2
    assert "a clustering" in capsys.readouterr().err
    assert main(["show", str(folder / "one" / "model.epi")]) == 0
    assert "KMeans" in capsys.readouterr().out


def test_the_page_shows_the_clusters(folder):
    page = (folder / "one" / "report.html").read_text()
    assert "finds <strong>2 clusters</strong> in 30 rows" in page
    assert 'data-figure="embedding"' in page
    assert "high a" in page
    record = json.loads((folder / "one" / "report.json").read_text())
    assert record["clustering"]["agreement"]["adjusted_rand"] > 0.9


def test_the_command_says_what_the_clusters_are_worth(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["cluster", str(folder / "data.csv"), "--k", "2", "--models", "kmeans"]) == 0
    said = capsys.readouterr().out
    assert "2 clusters by KMeans: " in said
    assert "adjusted Rand index" in said or "no better than chance" in said
    assert "cluster 0: " in said
    assert sorted(p.name for p in (tmp_path / "epicycle-data-clusters").iterdir()) == FILES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "nowhere.csv: no such file"),
        (["DATA", "--k", "many"], "--k many: expected auto or a whole number of clusters"),
        (["DATA", "--k", "31"], "k=31: the table has 30 rows"),
        (["DATA", "--labels", "x"], "labels='x': the table has no such column"),
        (["DATA", "--drop", "a", "--drop", "b", "--drop", "kind"], "no column is left to compare rows by"),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [str(folder / "data.csv") if a == "DATA" else a for a in arguments]
    assert main(["cluster", *given]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_commands_that_need_a_target_refuse_a_clustering(folder, capsys):
    assert main(["report", str(folder / "one" / "model.epi"), str(folder / "data.csv"), "--target", "kind"]) == 2
    assert "the model is a clustering" in capsys.readouterr().err
