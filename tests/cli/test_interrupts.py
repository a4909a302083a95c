"""Ctrl-C once: the search ends and the best model is written. Twice: nothing but the search, which can go on."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import epicycle as ep
from epicycle.cli import main

FILES = [
    "metrics.json",
    "model.epi",
    "predictions.csv",
    "report.html",
    "report.json",
    "search.jsonl",
    "train.py",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 6))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=3_000) > 0, "yes", "no")
    path = tmp_path_factory.mktemp("interrupts") / "data.csv"
    pa.csv.write_csv(pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": y.tolist()}), path)
    return path


def interrupted(data, out, *after):
    """Train, with an interrupt after each line that holds one of the texts, in turn; status, output and errors."""
    command = [sys.executable, "-c", "import sys; from epicycle.cli import main; sys.exit(main())", "train", str(data)]
    command += ["--time", "240", "--models", "logistic,gradientboosting", "--out", str(out)]
    awaited, lines = list(after), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            lines.append(line)
            if awaited and awaited[0] in line:
                awaited.pop(0)
                os.kill(process.pid, signal.SIGINT)
        errors = process.stderr.read()
        status = process.wait(timeout=120)
    assert not awaited
    return status, "".join(lines), errors


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_one_interrupt_finishes_with_the_best_so_far(data, tmp_path):
    status, said, errors = interrupted(data, tmp_path / "run", "GradientBoosting")
    assert (status, errors) == (0, "")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == FILES
    assert "the search ends with the best so far" in said
    told = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert told["interrupted"]
    assert told["seconds"] < 120  # of 240
    table = ep.training.read_table(data)
    assert ep.load(tmp_path / "run" / "model.epi").score(table, np.array(table["y"].to_pylist())) > 0.7


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_two_interrupts_leave_the_search_alone_and_it_goes_on(data, tmp_path, capsys):
    out = tmp_path / "run"
    status, _, errors = interrupted(data, out, "GradientBoosting", "the search ends with")
    assert status == 130
    assert f"--resume {out} goes on with this search" in errors
    assert [path.name for path in out.iterdir()] == ["search.jsonl"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    before = (out / "search.jsonl").read_text()
    arguments = ["train", str(data), "--models", "logistic,gradientboosting", "--resume", str(out)]
    assert main([*arguments, "--time", "3"]) == 0
    assert "going on with a search of" in capsys.readouterr().out
    assert (out / "search.jsonl").read_text().startswith(before)
    assert sorted(path.name for path in out.iterdir()) == FILES
    # With the same time there is nothing to add, and the leaderboard is the same.
    known = json.loads((out / "report.json").read_text())["leaderboard"]
    assert main([*arguments, "--time", "3"]) == 0
    again = json.loads((out / "report.json").read_text())["leaderboard"]
    assert [(r["name"], r["score_mean"], r["n_folds"]) for r in again[:3]] == [
        (r["name"], r["score_mean"], r["n_folds"]) for r in known[:3]
    ]
    # Another metric is another search.
    assert main([*arguments, "--metric", "log_loss"]) == 2
    assert "holds the search of another run, whose metric was 'accuracy'" in capsys.readouterr().err
    assert main([*arguments, "--out", str(tmp_path / "other")]) == 2


def test_a_readable_model_is_chosen_and_its_cost_is_told(tmp_path, capsys):
    """Only products of two columns explain the target: sums of functions of one column cannot."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=800) > 0, "yes", "no")
    path = tmp_path / "product.csv"
    pa.csv.write_csv(pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y": y.tolist()}), path)
    out = tmp_path / "run"
    models = "logistic,AdditiveBoosting,GradientBoosting"
    assert main(["train", str(path), "--time", "3", "--models", models, "--interpretable", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    told = json.loads((out / "metrics.json").read_text())
    assert told["model"].startswith(("LogisticRegression", "AdditiveBoosting"))
    assert told["restriction"]["name"].startswith("GradientBoosting")
    assert told["restriction"]["cost"] > 0.2
    assert "can be read; the best model that cannot" in said
    assert "can be read; the best model that cannot" in (out / "report.html").read_text()
    refused = ["train", str(path), "--models", "GradientBoosting", "--interpretable"]
    assert main([*refused, "--out", str(tmp_path / "n")]) == 2
    assert "interpretable=True: none of the methods is readable" in capsys.readouterr().err
    assert not (tmp_path / "n").exists()
