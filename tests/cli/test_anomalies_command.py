"""epicycle anomalies: what it writes, prints and exits with."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import epicycle as ep
from epicycle import report
from epicycle.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng, n = tmp_path_factory.mktemp("anomalies"), np.random.default_rng(0), 200
    income = rng.lognormal(10, 0.5, n)
    spend = 0.3 * income * rng.lognormal(0, 0.15, n)
    spend[:10] = income[:10] * rng.uniform(2, 4, 10)
    city = rng.choice(["Rome", "Oslo"], n)
    table = pd.DataFrame({"age": rng.uniform(20, 70, n), "income": income, "spend": spend, "city": city})
    table["fraud"] = np.where(np.arange(n) < 10, "yes", "no")
    table.to_csv(folder / "cards.csv", index=False)
    for name in ("one", "two"):
        run = ["anomalies", str(folder / "cards.csv"), "--label", "fraud", "--out", str(folder / name), "--json"]
        assert main(run) == 0
    return folder


def test_files_repeat_and_rank_the_rows(folder):
    assert sorted(p.name for p in (folder / "one").iterdir()) == [
        "anomalies.csv",
        "model.epi",
        "report.html",
        "report.json",
    ]
    for name in ("anomalies.csv", "report.html", "report.json"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name
    with (folder / "one" / "anomalies.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200
    assert sum(int(row["row"]) < 10 for row in rows[:10]) >= 9
    assert all("spend" in row["reasons"] for row in rows[:8])
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores)


def test_the_record_and_the_model_agree(folder):
    found = json.loads((folder / "one" / "report.json").read_text())["anomalies"]
    assert found["label"] == {"column": "fraud", "value": "yes", "rows": 10}
    precisions = [row["average_precision"] for row in found["candidates"]]
    assert precisions == sorted(precisions, reverse=True)
    assert found["candidates"][0]["recall"] >= 0.8
    table = pd.read_csv(folder / "cards.csv")
    model = ep.load(folder / "one" / "model.epi")
    assert (model.predict(table) == -1).sum() == found["flagged"]
    page = (folder / "one" / "report.html").read_text()
    assert "Detectors side by side" in page
    assert "spend = " in page


def test_without_labels_a_share_of_the_rows_is_reported(folder, capsys):
    run = ["anomalies", str(folder / "cards.csv"), "--drop", "fraud", "--share", "0.05", "--out", str(folder / "three")]
    assert main(run) == 0
    said = capsys.readouterr().out
    assert "10 of 200 rows are unusual" in said
    assert "agreement" in said
    run = ep.anomaly_table(str(folder / "cards.csv"), "fraud", seed=1)
    assert run.labels.sum() == 10
    assert "row 0" in str(run) or "row" in str(run)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--label", "theft"], "no such column"),
        (["--label", "age"], "different values; expected two"),
        (["--share", "0.9"], "share=0.9"),
        (["--drop", "nothing"], "drop='nothing'"),
        (
            ["--drop", "age", "--drop", "income", "--drop", "spend", "--drop", "city", "--label", "fraud"],
            "no column is left",
        ),
    ],
)
def test_errors_are_plain(folder, change, words, capsys):
    assert main(["anomalies", str(folder / "cards.csv"), *change, "--out", str(folder / "bad")]) != 0
    said = capsys.readouterr()
    assert words in said.err + said.out
    assert "Traceback" not in said.err
    assert not (folder / "bad").exists()


def test_a_page_of_odd_values_is_a_page():
    record = {"anomalies": {"candidates": [{"name": "<script>alert(1)</script>"}, 3], "histogram": {"edges": ["a"]}}}
    page = report.html({**record, "title": "x"})
    assert "<script>alert(1)" not in page
    assert report.html({"anomalies": {"top": [{"row": 1, "reasons": None}], "blame": [{"share": "x"}]}})
