"""epicycle topics: what it writes, prints and exits with; the page; groups by time."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle.automl.topics._periods import periods_of
from epicycle.cli import main
from epicycle.exceptions import DataError

THEMES = [
    "goal team match league coach player season trophy",
    "vote law party senate court judge treaty minister",
    "stock market bank price trade profit shares dollar",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("topics"), np.random.default_rng(0)
    rows = []
    for i in range(240):
        mix = rng.dirichlet([0.02 + 0.1 * (i // 60), 0.1, 0.1])  # the first theme grows
        words = [rng.choice(THEMES[rng.choice(3, p=mix)].split()) for _ in range(40)]
        rows.append({"id": i, "year": 1990 + i // 60, "body": " ".join(words), "source": "ab"[i % 2]})
    rows += [{"id": 240, "year": 1993, "body": "", "source": "a"}, {"id": 241, "year": None, "body": "law vote"}]
    pd.DataFrame(rows).to_csv(folder / "news.csv", index=False)
    for name in ("one", "two"):
        run = ["topics", str(folder / "news.csv"), "--text", "body", "--topics", "3", "--time", "year", "--json"]
        assert main([*run, "--out", str(folder / name), "--jobs", "1" if name == "one" else "2"]) == 0
    return folder


def found_in(folder, name="one"):
    return json.loads((folder / name / "report.json").read_text())["topics"]


def test_files_repeat_for_any_number_of_threads(folder):
    names = ["documents.csv", "model.epi", "report.html", "report.json", "topics.csv"]
    assert sorted(p.name for p in (folder / "one").iterdir()) == names
    for name in ("documents.csv", "report.html", "report.json", "topics.csv"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


def test_the_planted_topics_their_sizes_and_their_years(folder):
    found = found_in(folder)
    themes = [set(theme.split()) for theme in THEMES]
    which = [next(i for i, theme in enumerate(themes) if set(t["words"][:8]) == theme) for t in found["topics"]]
    assert sorted(which) == [0, 1, 2]
    shares = [topic["share"] for topic in found["topics"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    table = pd.read_csv(folder / "news.csv")
    counts = table["body"].fillna("").map(lambda body: [sum(w in theme for w in body.split()) for theme in themes])
    counts = np.array(counts.tolist())
    assert_allclose(shares, counts.sum(axis=0)[which] / counts.sum(), atol=0.02)
    over = found["over"]
    assert over["labels"] == ["1990", "1991", "1992", "1993"]
    assert over["documents"] == [60, 60, 60, 60]
    assert over["missing"] == 1
    truth = np.array([counts[(table["year"] == y).to_numpy()].sum(axis=0) for y in range(1990, 1994)], dtype=float)
    assert_allclose(over["shares"], (truth / truth.sum(axis=1, keepdims=True)).T[which], atol=0.03)
    assert found["counts"]["left_out"] == 1
    assert found["counts"]["documents"] == 241
    assert found["perplexity"] < 0.7 * found["unigram"]
    assert found["unigram"] == pytest.approx(24, rel=0.15)  # 24 words, about equally frequent
    best = max(found["topics"][0]["examples"], key=lambda row: row["share"])
    assert best["text"] == " ".join(table["body"][best["row"]].split())[:160]


def test_documents_and_model_agree(folder):
    model, run = ep.load(folder / "one" / "model.epi"), found_in(folder)
    table = pd.read_csv(folder / "news.csv")
    shares = np.sort(model.transform(table["body"][:5]), axis=1)
    with (folder / "one" / "documents.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 242
    written = np.array([[float(row[f"topic{k}"]) for k in (1, 2, 3)] for row in rows[:5]])
    assert_allclose(np.sort(written, axis=1), shares, atol=1e-4)
    assert [row["topic"] for row in rows[:5]] == [str(k) for k in written.argmax(axis=1) + 1]
    assert rows[240]["topic"] == ""
    with (folder / "one" / "topics.csv").open() as file:
        words = [row["word"] for row in csv.DictReader(file) if row["topic"] == "1"]
    assert words == run["topics"][0]["words"]


def test_the_number_is_chosen_by_held_out_words_and_printed(folder, capsys):
    run = ["topics", str(folder / "news.csv"), "--text", "body", "--time", "source", "--out", str(folder / "auto")]
    assert main(run) == 0
    said = capsys.readouterr().out
    assert "5 topics: perplexity" in said
    assert "by the frequencies of words alone" in said
    assert "certificate: split R-hat" in said
    found = found_in(folder, "auto")
    tried = {row["topics"]: row["perplexity"] for row in found["candidates"]}
    assert list(tried) == [5, 10, 20, 40]
    k = len(found["topics"])
    assert tried[k] <= 1.02 * min(tried.values())
    assert all(p > 1.02 * min(tried.values()) for j, p in tried.items() if j < k)
    assert found["over"]["labels"] == ["a", "b"]
    assert found["over"]["missing"] == 1
    page = (folder / "auto" / "report.html").read_text()
    for figure in ("sizes", "topic-1", "over-1", "perplexity", "objective"):
        assert f'data-figure="{figure}"' in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--text", "nothing"], "text: the table has no column 'nothing'"),
        (["--text", "year"], "text: column 'year' holds"),
        (["--time", "body"], "different texts; expected dates, numbers"),
        (["--topics", "some"], "--topics some: expected a whole number, or auto"),
        (["--topics", "0"], "topics=0"),
        (["--stop-words", "german"], "stop_words='german'"),
        (["--text", "source"], "no term that occurs in at least two documents"),
    ],
)
def test_bad_input_is_named(folder, change, words, capsys):
    run = ["topics", str(folder / "news.csv"), "--text", "body", *change, "--out", str(folder / "bad")]
    assert main(run) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert "Traceback" not in said.err
    assert not (folder / "bad").exists()


def test_few_or_short_documents_are_refused():
    with pytest.raises(DataError, match="documents of 'x' have words; expected at least 20"):
        ep.topic_table(pa.table({"x": ["red green", "blue gold"] * 9, "y": [1] * 18}), "x", topics=2)


@pytest.mark.parametrize(
    ("values", "labels", "group"),
    [
        (["2020-01-31", "2020-03-01", None], [f"2020-0{m}" for m in (1, 2, 3)], [0, 2, -1]),
        (["2020-01-01", "2020-01-03"], ["2020-01-01", "2020-01-02", "2020-01-03"], [0, 2]),
        (pd.to_datetime(["1890-05-01", "1999-01-01"]), None, [0, 21]),
        ([1990, 1990, 1993], ["1990", "1991", "1992", "1993"], [0, 0, 3]),
        ([1801.0, 1999.0, np.nan], None, [0, 19, -1]),
        ([0.5, 1.25, 7.75, 9.5], None, [0, 4, 8, 11]),
        (["x", "y", "x", None], ["x", "y"], [0, 1, 0, -1]),
        ([3.5, 3.5], ["3.5"], [0, 0]),
    ],
    ids=["months", "days", "five years", "years", "numbers of decades", "quantiles", "names", "one value"],
)
def test_periods(values, labels, group):
    found = periods_of(pa.Table.from_pandas(pd.DataFrame({"when": values}))["when"], "when")
    assert found.group.tolist() == group
    assert labels is None or found.labels == labels
    assert len(found.labels) <= 24
    assert found.in_time == (labels != ["x", "y"])
    with pytest.raises(DataError, match="has no value"):
        periods_of(pa.chunked_array([pa.array([None, None], pa.string())]), "when")


def test_nonsense_is_a_page():
    bad = {"topics": [{"words": ["<script>alert(1)</script>", 3], "probabilities": ["x"], "examples": [3]}, None]}
    bad |= {"over": {"labels": ["a", 3], "shares": [None, [1]], "documents": "x", "in_time": True}}
    bad |= {"candidates": [{"topics": "x"}, 7], "certificate": {"holds": None}, "objective": [1, "y"]}
    page = ep.report.html({"topics": bad})
    assert "<script>alert(1)" not in page
    assert "NaN" not in page
    for part in ({"over": {"labels": []}}, {"topics": [3]}, {"counts": 7, "topics": "x"}):
        assert ep.report.html({"topics": part})
