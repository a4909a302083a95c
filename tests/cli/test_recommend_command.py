"""epicycle recommend: what it writes, prints and exits with."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import epicycle as ep
from epicycle.cli import main

OPTIONS = ["--user", "who", "--item", "what", "--rating", "stars"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recommend")
    rng = np.random.default_rng(0)
    who, what = np.divmod(rng.choice(50 * 30, size=1000, replace=False), 30)
    taste = np.where(what % 2 == who % 2, 1.0, -1.0)  # even users like even items
    stars = np.clip(np.round(3 + taste + 0.5 * rng.normal(size=1000)), 1, 5)
    names = np.array([f"u{u:02d}" for u in range(50)])
    table = pd.DataFrame({"who": names[who], "what": what, "stars": stars, "day": rng.permutation(1000), "note": "x"})
    table.to_csv(folder / "stars.csv", index=False)
    kinds = ["even|all" if i % 2 == 0 else "odd|all" for i in range(31)]  # item 30 has no rating
    items = pd.DataFrame({"what": range(31), "title": [f"film {i}" for i in range(31)], "kind": kinds})
    items.to_csv(folder / "films.csv", index=False)
    for name in ("one", "two"):
        run = ["recommend", str(folder / "stars.csv"), *OPTIONS, "--time", "day", "--items", str(folder / "films.csv")]
        assert main([*run, "--out", str(folder / name), "--top", "4", "--json"]) == 0
    return folder


def test_all_files_repeat_byte_for_byte(folder):
    names = sorted(p.name for p in (folder / "one").iterdir())
    assert names == ["model.epi", "recommendations.csv", "report.html", "report.json"]
    for name in ("recommendations.csv", "report.html", "report.json"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


def test_the_split_is_by_time_and_the_error_is_that_of_the_model(folder):
    found = json.loads((folder / "one" / "report.json").read_text())["recommendations"]
    table = pd.read_csv(folder / "stars.csv")
    cut = table["day"].nlargest(200).min()
    assert (found["counts"]["train"], found["counts"]["test"]) == (800, 200)
    test = table[table["day"] >= cut]
    mean = table.loc[table["day"] < cut, "stars"].mean()
    assert found["baseline"] == pytest.approx(np.sqrt(np.mean((test["stars"] - mean) ** 2)))
    assert found["is_better"]
    assert found["interval"][0] < found["rmse"] < found["interval"][1] < found["baseline"]
    errors = [row["rmse"] for row in found["candidates"]]
    assert errors == sorted(errors)
    assert found["candidates"][0]["name"] == found["method"]
    assert any(row["name"].startswith("features") for row in found["candidates"])
    assert found["criteria"]["model"]["ndcg"] > found["criteria"]["popular items"]["ndcg"]


def test_the_lists_are_those_of_the_model(folder):
    model = ep.load(folder / "one" / "model.epi")
    with (folder / "one" / "recommendations.csv").open() as file:
        rows = list(csv.DictReader(file))
    mine = [row for row in rows if row["user"] == "u07"]
    items, scores = model.recommend("u07", 4)
    assert [int(row["item"]) for row in mine] == items.tolist()
    assert [float(row["score"]) for row in mine] == scores.tolist()
    assert [row["name"] for row in mine] == [f"film {i}" for i in items]
    assert [row["rank"] for row in mine] == ["1", "2", "3", "4"]
    table = pd.read_csv(folder / "stars.csv")
    assert not set(items.tolist()) & set(table.loc[table["who"] == "u07", "what"])
    assert 30 in model.items_  # it has features, and so factors


def test_the_page_shows_candidates_lists_and_certificate(folder):
    page = (folder / "one" / "report.html").read_text()
    for name in ("ratings", "penalties"):
        assert f'data-figure="{name}"' in page
    assert "film " in page
    assert "the test is later than all that was learnt from" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_it_prints_the_verdict(folder, capsys):
    run = ["recommend", str(folder / "stars.csv"), *OPTIONS, "--out", str(folder / "three")]
    assert main(run) == 0
    printed = capsys.readouterr().out
    assert "held-out ratings with an error (RMSE) of" in printed
    assert "lists of popular items: NDCG" in printed
    assert "certificate: gradient norm" in printed
    assert 'data-figure="objective"' in (folder / "three" / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--user", "nobody"], "user: the table has no column 'nobody'"),
        (["--rating", "note"], "rating: column 'note' holds"),
        (["--time", "stars"], "a column is named twice"),
        (["--items", "{folder}/stars.csv"], "items: an id occurs twice"),
    ],
)
def test_bad_input_is_named(folder, capsys, change, message):
    change = [part.format(folder=folder) for part in change]
    run = ["recommend", str(folder / "stars.csv"), *OPTIONS, *change, "--out", str(folder / "bad")]
    assert main(run) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "bad").exists()


def test_nonsense_is_a_page():
    record = {
        "recommendations": {"candidates": [{"name": "<script>alert(1)</script>"}, 3], "counts": {"levels": ["a"]}}
    }
    assert "<script>alert" not in ep.report.html(record)
