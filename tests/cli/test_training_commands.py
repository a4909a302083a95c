"""train, predict, report, cv and compare as commands: what they write, print and exit with."""

import csv
import io
import json
import os
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet
import pytest

import epicycle as ep
from epicycle.cli import main
from epicycle.report._wording import next_steps

FILES = ["metrics.json", "model.epi", "predictions.csv", "report.html", "report.json", "search.jsonl", "train.py"]


def sample(n=160, seed=0):
    rng = np.random.default_rng(seed)
    a, kind = rng.normal(size=n), rng.choice(["round", "square", 'odd, "quoted"'], n)
    y = np.where(a + (kind == "round") + 0.4 * rng.normal(size=n) > 0.3, "yes", "no")
    return pa.table({"a": a, "b": rng.normal(size=n), "kind": kind.tolist(), "y": y.tolist()})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A CSV file, and the folders of two models trained on it."""
    folder = tmp_path_factory.mktemp("commands")
    pa.csv.write_csv(sample(), folder / "data.csv")
    for name, models in (("good", "logistic"), ("poor", "decisiontree")):
        assert (
            main(["train", str(folder / "data.csv"), "--time", "2", "--models", models, "--out", str(folder / name)])
            == 0
        )
    return folder


def test_train_writes_the_folder_and_says_what_leads(trained, capsys):
    out = trained / "again"
    assert (
        main(["train", str(trained / "data.csv"), "--time", "1.5", "--models", "decision-tree", "--out", str(out)]) == 0
    )
    said = capsys.readouterr().out
    assert sorted(p.name for p in out.iterdir()) == FILES
    assert "best" in said
    assert "test rows" in said
    assert "at 95% (binomial)" in said
    page = (out / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert len(page) < 3_000_000
    twin = json.loads((out / "report.json").read_text())
    assert twin["test"]["score"] == json.loads((out / "metrics.json").read_text())["test"]["score"]
    assert {"confusion", "calibration", "roc", "search"} <= set(twin["curves"])
    # The next steps of the terminal are those of the page.
    said_steps = [line.removeprefix("  - ") for line in said.splitlines() if line.startswith("  - ")]
    assert said_steps == next_steps({**twin, "warnings": []})


def test_json_is_all_that_is_printed(trained, capsys):
    arguments = ["train", "iris", "--time", "1", "--models", "decisiontree", "--json", "--out", str(trained / "iris")]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["target"] == "species"
    assert told["folder"] == str(trained / "iris")


def predictions(capsys, *arguments):
    assert main(["predict", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_predict_is_the_model_for_every_kind_of_file(trained, tmp_path, capsys, monkeypatch):
    table = sample(50, seed=1)
    model = ep.load(trained / "good" / "model.epi")
    expected = model.predict(table).tolist()
    file = trained / "good" / "model.epi"
    pa.csv.write_csv(table, tmp_path / "new.csv")
    pa.parquet.write_table(table, tmp_path / "new.parquet")
    pa.feather.write_feather(table, tmp_path / "new.feather")
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    (tmp_path / "new.tsv").write_text(
        (tmp_path / "new.csv").read_text().replace('odd, ""quoted""', "odd").replace(",", "\t")
    )
    for name in ("new.csv", "new.parquet", "new.feather", "new.jsonl"):
        rows = list(csv.DictReader(io.StringIO(predictions(capsys, file, tmp_path / name))))
        assert [row["prediction"] for row in rows] == expected
    assert predictions(capsys, file, tmp_path / "new.tsv").count("\n") == 51
    stdin = io.TextIOWrapper(io.BytesIO((tmp_path / "new.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    lines = predictions(capsys, file, "-", "--json", "--proba").splitlines()
    first = json.loads(lines[0])
    assert first["prediction"] == expected[0]
    assert first["p(yes)"] == pytest.approx(model.predict_proba(table)[0, 1], rel=1e-12)
    target = tmp_path / "out.csv"
    assert predictions(capsys, file, tmp_path / "new.csv", "--out", target) == ""
    assert len(target.read_text().splitlines()) == 51


READERS = {
    "csv": pa.csv.read_csv,
    "tsv": lambda path: pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(delimiter="\t")),
    "jsonl": pa.json.read_json,
    "parquet": pa.parquet.read_table,
    "pq": pa.parquet.read_table,
    "arrow": lambda path: pa.ipc.open_file(path).read_all(),
    "feather": pa.feather.read_table,
}


@pytest.mark.parametrize("suffix", READERS)
def test_predict_writes_the_format_of_the_suffix(trained, tmp_path, capsys, suffix):
    table = sample(50, seed=1)
    file, target = trained / "good" / "model.epi", tmp_path / f"out.{suffix}"
    pa.parquet.write_table(table, tmp_path / "new.parquet", row_group_size=20)
    assert predictions(capsys, file, tmp_path / "new.parquet", "--proba", "--out", target) == ""
    written = READERS[suffix](target)
    model = ep.load(file)
    assert written["prediction"].to_pylist() == model.predict(table).tolist()
    assert np.allclose(written["p(yes)"].to_numpy(), model.predict_proba(table)[:, 1], rtol=1e-12)


def test_predict_refuses_formats_that_it_does_not_write(trained, tmp_path, capsys):
    pa.csv.write_csv(sample(20), tmp_path / "new.csv")
    command = ["predict", str(trained / "good" / "model.epi"), str(tmp_path / "new.csv"), "--out"]
    for more in (["out.xlsx"], ["out.csv.gz"], ["out.parquet", "--json"]):
        assert main([*command, str(tmp_path / more[0]), *more[1:]]) == 2
        assert "expected" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_predict_streams_in_constant_memory(trained, tmp_path, capsys, monkeypatch):
    """Never more than a block at once, whatever the size of the file."""
    blocks = []
    real = ep.TableModel.predict
    monkeypatch.setattr(ep.TableModel, "predict", lambda self, X: (blocks.append(X.num_rows), real(self, X))[1])
    n = 150_000
    with (tmp_path / "long.csv").open("w") as file:
        file.write("y,kind,a,b,more\n")
        file.write("no,round,0.25,1.5,some text that nobody reads\n" * n)
    assert (
        main(
            [
                "predict",
                str(trained / "good" / "model.epi"),
                str(tmp_path / "long.csv"),
                "--out",
                str(tmp_path / "o.csv"),
            ]
        )
        == 0
    )
    assert sum(blocks) == n
    assert len(blocks) >= 2
    assert max(blocks) <= 4 * 2**20 / 40
    assert os.path.getsize(tmp_path / "o.csv") > n


def test_predict_checks_columns_and_types(trained, tmp_path, capsys):
    model = trained / "good" / "model.epi"
    (tmp_path / "lacking.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "wrong.csv").write_text("a,b,kind\n1,2,round\nmuch,4,round\n")
    (tmp_path / "bare.csv").write_text("a,b,kind\n")
    for name, said in (("lacking", "'kind'"), ("wrong", "much"), ("bare", "no rows")):
        assert main(["predict", str(model), str(tmp_path / f"{name}.csv"), "--out", str(tmp_path / "out.csv")]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
        assert not (tmp_path / "out.csv").exists()
    (tmp_path / "new.csv").write_text("a,b,kind\n1,2,triangle\n,4,round\n")  # unknown level, missing number
    assert main(["predict", str(model), str(tmp_path / "new.csv")]) == 0
    assert main(["train", "diabetes", "--time", "1", "--models", "ridge", "--out", str(tmp_path / "r"), "--json"]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "r" / "model.epi"), "diabetes", "--proba"]) == 2
    assert "--proba" in capsys.readouterr().err


def test_report_on_new_rows(trained, tmp_path, capsys):
    pa.csv.write_csv(sample(200, seed=2), tmp_path / "later.csv")
    model = ep.load(trained / "good" / "model.epi")
    assert (
        main(["report", str(trained / "good" / "model.epi"), str(tmp_path / "later.csv"), "--out", str(tmp_path / "r")])
        == 0
    )
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == ["report.html", "report.json"]
    told = json.loads((tmp_path / "r" / "report.json").read_text())
    assert told["test"]["score"] == pytest.approx(model.score(sample(200, seed=2)))
    assert f"{told['test']['score']:.4g}" in capsys.readouterr().out


def test_cv_of_a_model_and_of_its_script(trained, capsys):
    scores = []
    for name in ("model.epi", "train.py"):
        assert main(["cv", str(trained / "good" / name), str(trained / "data.csv"), "--json", "--folds", "4"]) == 0
        scores.append(json.loads(capsys.readouterr().out))
    assert scores[0]["folds"] == scores[1]["folds"]
    assert len(scores[0]["folds"]) == 4
    assert scores[0]["score"] == pytest.approx(np.mean(scores[0]["folds"]))
    assert main(["cv", str(trained / "good" / "model.epi"), str(trained / "data.csv"), "--metric", "log_loss"]) == 0
    assert "log loss" in capsys.readouterr().out


def test_cv_of_another_target_does_not_learn_from_it(trained, capsys):
    """`kind` does not depend on the other columns but y: accuracy is that of guessing, not of reading the answer."""
    for name in ("model.epi", "train.py"):
        command = ["cv", str(trained / "good" / name), str(trained / "data.csv"), "--target", "kind", "--json"]
        assert main(command) == 0
        assert json.loads(capsys.readouterr().out)["score"] < 0.6


def test_a_feature_is_no_target_of_a_fitted_model(trained, tmp_path, capsys):
    data, model = str(trained / "data.csv"), str(trained / "good" / "model.epi")
    for command in (["report", model, data], ["compare", model, model, "--data", data]):
        assert main([*command, "--target", "kind"]) == 2
        assert "'kind': is a feature of the model; expected 'y'" in capsys.readouterr().err
    assert main(["cv", model, data, "--target", "a"]) == 2
    assert "expected classes" in capsys.readouterr().err


def test_targets_of_another_type_are_the_same_labels_or_refused(tmp_path, capsys):
    rng = np.random.default_rng(0)
    a = rng.normal(size=120)
    table = pa.table({"a": a, "y": (a + 0.3 * rng.normal(size=120) > 0).astype(int)})
    pa.csv.write_csv(table, tmp_path / "data.csv")
    command = ["train", str(tmp_path / "data.csv"), "--time", "1", "--models", "logistic", "--out", str(tmp_path / "m")]
    assert main(command) == 0
    model = str(tmp_path / "m" / "model.epi")
    written = {
        "same": table["y"].cast(pa.bool_()),
        "word": pa.array(["high" if y else "low" for y in table["y"].to_pylist()]),
        "text": table["y"].cast(pa.string()),
    }
    pa.parquet.write_table(table.drop_columns(["y"]).append_column("other", written["same"]), tmp_path / "same.parquet")
    for name, column in written.items():
        path = tmp_path / f"{name}.parquet"
        pa.parquet.write_table(table.drop_columns(["y"]).append_column("other", column), path)
        capsys.readouterr()
        status = main(["report", model, str(path), "--target", "other", "--out", str(tmp_path / name)])
        said = capsys.readouterr()
        assert main(["compare", model, model, "--data", str(path), "--target", "other"]) == status
        if name == "word":
            assert status == 2
            assert "classes that the model does not know: high, low" in said.err
        else:
            assert status == 0
            told = json.loads((tmp_path / name / "report.json").read_text())
            assert told["test"]["score"] == pytest.approx(ep.load(model).score(table))


def test_compare_two_models(trained, tmp_path, capsys):
    pa.csv.write_csv(sample(300, seed=3), tmp_path / "later.csv")
    files = [str(trained / name / "model.epi") for name in ("good", "poor")]
    assert main(["compare", *files, "--data", str(tmp_path / "later.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    models = [ep.load(file) for file in files]
    errors = [1 - model.score(sample(300, seed=3)) for model in models]
    assert [told["first"], told["second"]] == pytest.approx(errors)
    assert told["lower"] <= told["difference"] <= told["upper"]
    assert main(["compare", *files, "--data", str(tmp_path / "later.csv")]) == 0
    assert "McNemar" in capsys.readouterr().out


def test_report_of_rows_that_lack_a_class_gives_no_raw_warnings(tmp_path, capsys):
    """Scores that have no value there are left out; scikit-learn's remarks about them are not for the user."""
    command = ["train", "iris", "--time", "1", "--models", "logistic", "--out", str(tmp_path / "model")]
    assert main(command) == 0
    table = ep.training.read_table("iris")
    model = str(tmp_path / "model" / "model.epi")
    for n in (2, 30, 60, 101):
        pa.csv.write_csv(table.slice(0, n), tmp_path / "rows.csv")
        capsys.readouterr()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert main(["report", model, str(tmp_path / "rows.csv"), "--out", str(tmp_path / f"{n}")]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        assert caught == []
        assert f"accuracy on {n} rows" in said.out or f"log loss on {n} rows" in said.out


def test_report_of_one_class_of_two(tmp_path, capsys):
    """There is no ROC curve of one class: the log loss is reported, which has a value."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    table = pa.table({"a": a, "y": np.where(a + 0.5 * rng.normal(size=300) > 1.2, "rare", "usual")})
    pa.csv.write_csv(table, tmp_path / "data.csv")
    command = ["train", str(tmp_path / "data.csv"), "--time", "1", "--models", "logistic", "--out", str(tmp_path / "m")]
    assert main(command) == 0
    pa.csv.write_csv(table.filter(pc.equal(table["y"], "rare")), tmp_path / "rare.csv")
    capsys.readouterr()
    model = str(tmp_path / "m" / "model.epi")
    assert main(["report", model, str(tmp_path / "rare.csv"), "--out", str(tmp_path / "r")]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"log loss on {np.sum(table['y'].to_numpy(zero_copy_only=False) == 'rare')} rows: " in said.out
    assert "nan" not in said.out


@pytest.mark.filterwarnings("default")
def test_a_warning_takes_one_line(capsys, monkeypatch):
    def warns(*_, **__):
        warnings.warn("something\n  odd", UserWarning, stacklevel=1)

    monkeypatch.setattr("epicycle.cli._info.print_methods", warns)
    assert main(["methods"]) == 0
    assert capsys.readouterr().err == "epicycle: warning: something odd\n"
