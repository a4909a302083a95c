"""Several targets of the same rows, and labels of one column: one split, none a feature, files, joint scores."""

import csv
import json
import runpy
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, r2_score

import epicycle as ep
from epicycle.automl._parts import read_parts
from epicycle.automl.multioutput._joint_scores import f1_of_counts
from epicycle.automl.tables._label_sets import label_sets, with_labels
from epicycle.cli import main
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError

N = 240
MODELS = ["ridge", "logisticregression"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N))
    tags = [
        [name for name, there in (("red", x > 0), ("big", y > 0.4), ("odd", i < 3)) if there]
        for i, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    return pa.table(
        {
            "a": a,
            "b": b,
            "price": 3 * a + b + 0.5 * rng.normal(size=N),
            "size": b - a + 0.5 * rng.normal(size=N),
            "kind": np.where(a + b + 0.3 * rng.normal(size=N) > 0, "yes", "no").tolist(),
            "tags": tags,
        }
    )


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    file = tmp_path_factory.mktemp("targets") / "table.csv"
    texts = pa.array([";".join(tags) for tags in table["tags"].to_pylist()])
    pa.csv.write_csv(table.drop_columns(["tags"]).append_column("tags", texts), file)
    return file


@pytest.fixture(scope="module")
def run(path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    targets = ["price", "size", "kind"]
    return ep.training.train_targets(path, targets, time=2, models=MODELS, drop=["tags"], out=folder), folder


# ------------------------------------------------------------------------------------------------ several targets


def test_no_target_is_a_feature_of_another(run):
    found, _ = run
    for name, one in found.runs.items():
        assert set(one.model_.encoder_.columns_) == {"a", "b"}
        others = {p.name for p in one.profile if p.treatment == "another target; no feature"}
        assert others == set(found.runs) - {name}
        assert one.target == name


def test_all_targets_have_the_same_rows(run, table):
    found, _ = run
    parts = [one.test_part for one in found.runs.values()]
    assert all(np.array_equal(part.rows, parts[0].rows) for part in parts)
    for name, one in found.runs.items():
        assert np.array_equal(np.asarray(table[name].to_pylist())[one.test_part.rows], one.test_part.y)


def test_models_predict_together_and_come_back_from_the_file(run, table, path):
    found, folder = run
    said = found.model_.predict(table)
    for name, one in found.runs.items():
        assert said[name].to_pylist() == one.model_.predict(table).tolist()
    assert set(found.model_.predict_proba(table)) == {"kind"}
    again = ep.load(folder / "model.epi")
    assert again.targets == ["price", "size", "kind"]
    assert again.predict(table).equals(said)
    assert again.types_ == {"a": "double", "b": "double"}


def test_files_of_all_and_of_each(run):
    found, folder = run
    assert sorted(p.name for p in folder.iterdir()) == [
        "kind", "metrics.json", "model.epi", "predictions.csv", "price", "size", "train.py",
    ]  # fmt: skip
    metrics = json.loads((folder / "metrics.json").read_text())
    for name, one in found.runs.items():
        assert metrics["targets"][name]["test"]["score"] == one.test.score
        assert ep.load(folder / name / "model.epi").target == name
    with (folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    part = found.runs["price"].test_part
    assert [int(row["row"]) for row in rows] == part.rows.tolist()
    assert [float(row["price: prediction"]) for row in rows] == part.responses["predict"].tolist()


def reproduced(script, folder, monkeypatch):
    """The model that a script writes into the folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    return ep.load("reproduced.epi")


def test_the_script_reproduces_all_models(run, table, tmp_path, monkeypatch):
    found, folder = run
    again = reproduced(folder / "train.py", tmp_path, monkeypatch)
    assert again.predict(table).equals(found.model_.predict(table))


def test_targets_that_are_all_numbers_have_a_mean_r2(path):
    found = ep.training.train_targets(path, ["price", "size"], time=2, models=MODELS, drop=["tags", "kind"])
    parts = [one.test_part for one in found.runs.values()]
    y, said = (np.column_stack(v) for v in ([p.y for p in parts], [p.responses["predict"] for p in parts]))
    score = found.joint["mean_r2"]
    assert score["score"] == pytest.approx(r2_score(y, said), abs=1e-12)
    assert score["lower"] < score["score"] < score["upper"]


@pytest.mark.parametrize("first", ["price", "kind", "rare"])
def test_the_split_does_not_depend_on_the_order_of_targets_and_rare_classes_are_in_both_parts(table, first):
    rare = np.full(N, "no", dtype=object)
    rare[[5, 50, 100, 150, 200]] = "yes"
    given = table.append_column("rare", pa.array(rare.tolist()))
    names = ["price", "kind", "rare"]
    parts = read_parts(given, target=first, also=[name for name in names if name != first])
    reference = read_parts(given, target="price", also=["kind", "rare"])
    assert np.array_equal(parts.rows_test, reference.rows_test)
    assert 0 < (rare[parts.rows_test] == "yes").sum() < 5


def test_rows_without_one_of_the_targets_are_left_out_and_said(table):
    gone = np.zeros(N, bool)
    gone[:30] = True
    given = table.set_column(2, "price", pa.array(table["price"].to_numpy(), mask=gone))
    parts = read_parts(given, target="size", also=["price"])
    assert parts.n_rows == N - 30
    assert parts.rows_test.min() >= 30
    assert any("30 rows" in issue.text and issue.kind == "missing target" for issue in parts.warned)


def test_a_test_file_for_several_targets(path):
    test = ep.training.read_table(path).slice(0, 60)
    found = ep.training.train_targets(path, ["price", "kind"], test=test, time=2, models=MODELS, drop=["tags", "size"])
    assert all(len(one.test_part.y) == 60 for one in found.runs.values())


# ------------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([["a", "b"], [], None]), [{"a", "b"}, set(), None]),
        (pa.array(["a;b", "a", "b;a", None]), [{"a", "b"}, {"a"}, {"a", "b"}, None]),
        (
            pa.array(["big house | red", "red", "big house | red"]),
            [{"big house", "red"}, {"red"}, {"big house", "red"}],
        ),
        (pa.array(["['a', 'b']", "['a']", "['b', 'a']"]), [{"a", "b"}, {"a"}, {"a", "b"}]),
        (pa.array(["a b", "b", "a b"]).dictionary_encode(), [{"a", "b"}, {"b"}, {"a", "b"}]),
    ],
)
def test_labels_of_lists_and_texts(column, expected):
    assert label_sets(column, "tags") == expected


def test_labels_become_columns_of_yes_and_no(table):
    made, names, left_out = with_labels(table, "tags")
    assert names == ["tags=red", "tags=big"]
    assert left_out == ["odd"]  # in three rows
    assert "tags" not in made.column_names
    assert made["tags=red"].to_pylist() == ["red" in tags for tags in table["tags"].to_pylist()]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([1.0, 2.0] * 20), "expected lists of labels"),
        (pa.array(["x", "y"] * 20), "no row has several labels"),
        (pa.array([["x"]] * 40), "nothing can be learnt"),
    ],
)
def test_what_holds_no_labels_is_refused(column, said):
    with pytest.raises(DataError, match=said):
        with_labels(pa.table({"t": column}), "t")


def test_labels_are_learnt_and_scored_together(table, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(table, path)
    found = ep.training.train_targets(
        path, "tags", task="multilabel", time=2, models=MODELS, drop=["price", "size", "kind"], out=tmp_path / "run"
    )
    parts = [one.test_part for one in found.runs.values()]
    y, said = (np.column_stack(v) for v in ([p.y for p in parts], [p.responses["predict"] for p in parts]))
    expected = {
        "exact_match": accuracy_score(y, said),
        "hamming_loss": hamming_loss(y, said),
        "f1_micro": f1_score(y, said, average="micro"),
        "f1_macro": f1_score(y, said, average="macro"),
    }
    assert {name: row["score"] for name, row in found.joint.items()} == pytest.approx(expected, abs=1e-12)
    assert expected["f1_macro"] > 0.9
    sets = ep.load(tmp_path / "run" / "model.epi").label_sets(table)
    right = [set(a) == set(b) - {"odd"} for a, b in zip(sets, table["tags"].to_pylist(), strict=True)]
    assert np.mean(right) > 0.85
    assert reproduced(tmp_path / "run" / "train.py", tmp_path, monkeypatch).label_sets(table) == sets


def test_f1_by_counts_of_rows_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    y, said = rng.random((2, 50, 4)) < 0.4
    counts = rng.integers(0, 4, 50)
    rows = np.repeat(np.arange(50), counts)
    micro, macro = f1_of_counts(*((x).astype(float) for x in (y & said, ~y & said, y & ~said)))
    assert micro(counts) == pytest.approx(f1_score(y[rows], said[rows], average="micro"))
    assert macro(counts) == pytest.approx(f1_score(y[rows], said[rows], average="macro"))


# ------------------------------------------------------------------------------------------------ the commands


def test_the_commands_for_several_targets(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = [
        "train",
        str(path),
        "--target",
        "price,kind",
        "--drop",
        "tags",
        "--drop",
        "size",
        "--models",
        "ridge,logistic",
    ]
    assert main([*train, "--time", "2", "--out", "run"]) == 0
    told = capsys.readouterr().out
    assert "2 targets of" in told
    page = (tmp_path / "run" / "report.html").read_text()
    assert 'href="price/report.html"' in page
    assert (tmp_path / "run" / "kind" / "report.html").exists()
    assert main(["predict", "run/model.epi", str(path), "--proba", "--interval", "0.8", "--out", "said.csv"]) == 0
    with open("said.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["price", "price lower", "price upper", "kind", "kind p(no)", "kind p(yes)"]
    model = ep.load("run/model.epi")
    table = ep.training.read_table(path)
    assert [row["kind"] for row in rows] == model.predict(table)["kind"].to_pylist()
    assert all(float(row["price lower"]) < float(row["price"]) < float(row["price upper"]) for row in rows)
    # The same by giving the option twice; a folder that holds files is kept.
    again = ["train", str(path), "--target", "price", "--target", "kind", "--out", "run"]
    assert main(again) != 0
    assert "--force" in capsys.readouterr().err
    for command in (
        ["report", "run/model.epi", str(path)],
        ["compare", "run/model.epi", "run/model.epi", "--data", str(path)],
    ):
        assert main(command) != 0
        assert "several targets (price, kind)" in capsys.readouterr().err


def test_the_command_for_labels(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--drop", "price", "--drop", "size", "--drop", "kind", "--models", "logistic"]
    assert main(["train", str(path), "--target", "tags", "--task", "multilabel", *options, "--time", "2"]) == 0
    assert "Hamming loss" in capsys.readouterr().out
    assert main(["predict", "epicycle-table/model.epi", str(path), "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["tags"] == ";".join(label for label in ("red", "big") if first[f"tags={label}"])
    assert main(["train", str(path), "--target", "tags", "--task", "multilabel", "--resume", "x"]) != 0
    assert "--resume: for one target" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("targets", "options", "error", "said"),
    [
        ("price", {}, ParameterError, "expected several"),
        (["price", "price"], {}, ParameterError, "named twice"),
        ([], {}, ParameterTypeError, "expected names"),
        (["price", "nothing"], {}, DataError, "no such column"),
        (["tags", "price"], {"task": "multilabel"}, ParameterError, "one column of several labels"),
        (["price", "size"], {"weight": "price"}, ParameterError, "already the"),
        (["price", "size"], {"groups": "size"}, ParameterError, "already the"),
    ],
)
def test_what_is_no_set_of_targets_is_refused(table, targets, options, error, said):
    with pytest.raises(error, match=said):
        ep.training.train_targets(table, targets, time=1, **options)


def test_lists_as_the_target_of_train_name_the_task(table):
    with pytest.raises(DataError, match="multilabel"):
        ep.train(table, "tags", time=1)


def test_models_of_targets_are_checked(run):
    found, _ = run
    with pytest.raises(ParameterTypeError, match="expected a TableModel"):
        ep.training.MultiOutputTableModel({"a": ep.RidgeCV()})
    with pytest.raises(ParameterError, match="does not begin"):
        ep.training.MultiOutputTableModel(found.model_.models, labels="tags")
    with pytest.raises(ParameterError, match="no labels"):
        found.model_.label_sets(pa.table({"a": [1.0], "b": [1.0]}))
