"""A run keeps its promises: the test part is apart, the score is that of the model, the files say the same."""

import csv
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.metrics import accuracy_score, r2_score

import epicycle as ep
from epicycle.exceptions import DataError, DataFileError, ParameterError


def test_score_is_that_of_the_model_on_rows_set_aside(run):
    found, _ = run
    parts = ep.training.read_parts(found.source, target="answer")
    assert parts.test.num_rows == 48
    assert accuracy_score(parts.y_test, found.model_.predict(parts.test)) == found.test.score
    assert found.test.lower < found.test.score <= found.test.upper
    assert found.test.method == "binomial"
    assert found.test.score > found.baseline_test
    train_rows = np.setdiff1d(np.arange(240), parts.rows_test)
    whole = pa.parquet.read_table(found.source)
    assert parts.train.equals(whole.take(pa.array(train_rows)))
    assert set(found.tests) >= {"accuracy", "log_loss", "brier", "roc_auc"}


def test_leaderboard_and_profile(run):
    found, _ = run
    best = found.leaderboard[0]
    assert best["status"] == "chosen"
    assert best["score_mean"] > found.baseline["score_mean"]
    assert {row["method"].partition(" ")[0] for row in found.leaderboard} == {
        "LogisticRegression",
        "GradientBoosting",
        "DecisionTree",
    }
    kinds = {p.name: p.kind for p in found.profile}
    assert kinds == {"size": "number", "weight": "number", "colour": "category", "day": "date", "answer": "target"}
    sketches = {p.name: p.sketch for p in found.profile}
    assert sum(sketches["weight"]["counts"]) == 192
    assert len(sketches["weight"]["edges"]) == len(sketches["weight"]["counts"]) + 1
    assert sketches["colour"]["levels"][0] in ("red", "green", "blue")
    assert found.certificate == found.model_.model_.certificate_
    record = json.loads(json.dumps(found.record(), default=str))
    assert record["data"]["split"] == {"train": 192, "test": 48}
    assert record["reproduce"] == found.script
    assert str(found).startswith(best["name"])


def test_files_say_the_same(run):
    found, folder = run
    assert sorted(p.name for p in folder.iterdir()) == ["metrics.json", "model.epi", "predictions.csv", "train.py"]
    told = json.loads((folder / "metrics.json").read_text())
    assert told["test"]["score"] == found.test.score
    assert told["cross_validated"]["score"] == found.leaderboard[0]["score_mean"]
    with (folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == found.test_part.responses["predict"].tolist()
    assert [float(row["p(yes)"]) for row in rows] == found.test_part.responses["predict_proba"][:, 1].tolist()
    assert [int(row["row"]) for row in rows] == found.test_part.rows.tolist()


def test_script_reproduces_the_model_bit_for_bit_in_a_new_process(run, tmp_path):
    found, folder = run
    code = (
        f"import runpy, epicycle as ep; runpy.run_path({str(folder / 'train.py')!r}, run_name='__main__'); "
        f"a, b = ep.load('reproduced.epi'), ep.load({str(folder / 'model.epi')!r}); "
        f"rows = ep.training.read_table({found.source!r}); print(a.predict_proba(rows).tobytes().hex()); "
        "print(b.predict_proba(rows).tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path
    )
    said, reproduced, reloaded = done.stdout.splitlines()
    assert said == f"score on 48 test rows: {found.test.score:.4f}"
    here = found.model_.predict_proba(ep.training.read_table(found.source)).tobytes().hex()
    assert reproduced == here
    assert reloaded == here


def test_regression_with_weights_and_a_test_file(tmp_path):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(300, 3)), rng.integers(1, 4, 300)
    y = X @ [2.0, -1.0, 0.0] + 0.3 * rng.normal(size=300)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "w": w, "y": y})
    lines = []
    run = ep.train(
        table.slice(0, 220),
        time=2,
        test=table.slice(220),
        weight="w",
        models="ridge",
        metric="rmse",
        progress=lines.append,
    )
    assert run.task == "regression"
    assert run.how == "as given"
    assert run.test.n == 80
    assert run.test.lower < run.test.score < run.test.upper
    assert 0.25 < run.test.score < 0.4
    assert "w" not in run.model_.encoder_.columns_
    assert any("best" in line and "root mean squared error" in line for line in lines)
    assert set(run.findings) | set(run.skipped) >= {"bias_variance", "slices", "ablation"}  # done, or said why not


def test_the_same_seed_divides_alike_and_another_otherwise(table):
    one, two, other = (ep.training.read_parts(table, target="answer", seed=s).rows_test.tolist() for s in (0, 0, 1))
    assert one == two != other


def test_no_model_leaves_no_folder(tmp_path, monkeypatch, table):
    for name in ("missing/run", "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(DataFileError, match="out: "):
            ep.train(table, "answer", time=1, out=tmp_path / name)
    (tmp_path / "file").unlink()
    import errno

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("epicycle.automl._training_run.TrainingRun._write_predictions", full)
    with pytest.raises(DataFileError, match="No space left"):
        ep.train(table, "answer", time=1, models="decisiontree", out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"time": 0}, "time=0"),
        ({"time": "long"}, "time='long'"),
        ({"metric": "r2"}, "metric='r2'"),
        ({"metric": "acuracy"}, "metric='acuracy'"),
        ({"models": "perceptrons"}, "models='perceptrons'"),
        ({"task": "ranking"}, "task='ranking'"),
        ({"test_size": 1.5}, "test_size=1.5"),
        ({"seed": -1}, "seed=-1"),
        ({"progress": 3}, "progress=3"),
        ({"groups": "answer"}, "groups='answer'"),
        ({"order": "sise"}, "order='sise'"),
        ({"drop": ["sise"]}, "drop='sise'"),
    ],
)
def test_bad_arguments_are_named(table, arguments, named):
    with pytest.raises((ParameterError, DataError), match=named):
        ep.train(table, "answer", **{"time": 1, **arguments})


def test_elastic_net_does_not_depend_on_the_unit_of_the_target(tmp_path):
    """In dollars or in millions: the L2 part of its penalty is not of the same degree as the errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X @ [3.0, -2.0, 1.0, 0.0] + rng.normal(size=200)
    scores = []
    for unit, weight in ((1.0, None), (1e6, "w")):
        table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "w": np.full(200, 2.0), "y": unit * y + 3 * unit})
        run = ep.train(table, "y", time=1, models="elasticnet", weight=weight, out=tmp_path / f"{unit:g}")
        assert run.certificate.holds
        scores.append(r2_score(table["y"].to_numpy(), run.model_.predict(table)))
        model = ep.load(tmp_path / f"{unit:g}" / "model.epi")
        assert np.array_equal(model.predict(table), run.model_.predict(table))
        assert model.certificate_ == run.certificate
    # Which candidates there is time for depends on the machine; none is a constant, whatever the unit.
    assert min(scores) > 0.9
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    space = {}
    exec(compile((tmp_path / "1" / "train.py").read_text(), "train.py", "exec"), {**space, "__name__": "script"}, space)
    assert type(space["model"].estimator).__name__ == "TransformedTargetRegressor"
