"""Skewed targets, prediction intervals, and rows in order of time."""

import json
import runpy
import sys

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from real_tables import DATA, needs

import epicycle as ep
from epicycle.automl.tables._columns import is_skewed
from epicycle.automl.tables._table_model import half_width
from epicycle.cli import main


def incomes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), rng.choice(["a", "b"], n)
    return pa.table({"x": x, "z": z, "income": np.exp(8 + 1.2 * x + 0.7 * (z == "b") + 0.1 * rng.normal(size=n))})


def test_a_skewed_target_is_fitted_as_its_logarithm(tmp_path):
    table = incomes()
    pa.csv.write_csv(table, tmp_path / "t.csv")
    run = ep.train(tmp_path / "t.csv", target="income", time=4, models=["RidgeCV"])
    methods = {row["method"]: row["score_mean"] for row in run.leaderboard}
    assert run.leaderboard[0]["method"] == "RidgeCV of the logarithm"
    assert methods["RidgeCV of the logarithm"] > methods["RidgeCV"] + 0.1
    # The script makes the same model.
    scope = {"__name__": "script"}
    exec(run.script, scope)
    parts = scope["read"](scope["DATA"])
    scope["model"].fit(parts.train, parts.y_train)
    assert np.array_equal(scope["model"].predict(parts.test), run.model_.predict(parts.test))
    run.model_.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").predict(table), run.model_.predict(table))


def test_what_is_skewed():
    rng = np.random.default_rng(0)
    assert is_skewed(np.exp(rng.normal(size=500)))
    assert not is_skewed(rng.normal(size=500) + 10)
    assert not is_skewed(-np.exp(rng.normal(size=500)))
    assert not is_skewed(rng.integers(0, 5, 500).astype(float))


def test_intervals_hold_as_often_as_they_say():
    """The rank of the width is exact: over all orders of n errors and a new one, that share is held."""
    rng = np.random.default_rng(1)
    for n, level in ((9, 0.9), (30, 0.8), (99, 0.95)):
        held = [
            abs(new) <= half_width(np.sort(np.abs(rng.standard_t(3, n))), level) for new in rng.standard_t(3, 4_000)
        ]
        exact = np.ceil((n + 1) * level - 1e-9) / (n + 1)
        assert abs(np.mean(held) - exact) < 4 * np.sqrt(exact * (1 - exact) / 4_000)
    assert half_width(np.arange(5.0), 0.9) == np.inf
    for level in (0, 1, 1.5, "much"):
        with pytest.raises(ep.exceptions.ParameterError, match="level="):
            half_width(np.arange(5.0), level)


def test_intervals_of_a_run_and_of_the_command(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    table = pa.table({"x": x, "y": 3 * x + rng.standard_t(4, 600)})
    pa.csv.write_csv(table, tmp_path / "t.csv")
    assert (
        main(["train", str(tmp_path / "t.csv"), "--time", "3", "--models", "ridge", "--out", str(tmp_path / "o")]) == 0
    )
    assert "Prediction intervals at 90%" in capsys.readouterr().out
    model = ep.load(tmp_path / "o" / "model.epi")
    fresh = rng.normal(size=4_000)
    bounds = model.predict_interval(pa.table({"x": fresh}), 0.9)
    target = 3 * fresh + rng.standard_t(4, 4_000)
    assert abs(np.mean((bounds[:, 0] <= target) & (target <= bounds[:, 1])) - 0.9) < 0.04
    command = ["predict", str(tmp_path / "o" / "model.epi"), str(tmp_path / "t.csv"), "--interval"]
    assert main([*command, "0.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction,lower,upper"
    first = [float(cell) for cell in lines[1].split(",")]
    assert_allclose(first[1:], model.predict_interval(table.slice(0, 1), 0.5)[0])
    assert main([*command, "2"]) == 2
    assert "level=2" in capsys.readouterr().err


def test_tasks_that_are_none_of_train_are_refused_in_plain_words():
    table = pa.table({"x": np.arange(20.0), "y": np.arange(20.0), "z": np.arange(20.0)})
    with pytest.raises(ep.exceptions.ParameterError, match="censored rows"):
        ep.train(table, target="y", task="survival")
    with pytest.raises(ep.exceptions.DataError, match="names 2 columns; expected one"):
        ep.train(table, target="y, z")


def test_a_folder_that_holds_files_is_kept(tmp_path, capsys):
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "metrics.json").write_text("mine")
    command = ["train", "iris", "--time", "2", "--models", "DecisionTree", "--out", str(tmp_path / "o")]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "o" / "metrics.json").read_text() == "mine"
    assert main([*command, "--force"]) == 0
    assert (tmp_path / "o" / "metrics.json").read_text() != "mine"


def test_folds_in_order_of_time_learn_from_half_of_the_rows():
    from epicycle.automl._parts import folds

    for train, test in folds(np.arange(1_000.0), task="regression", groups=None, ordered=True, seed=0):
        assert len(train) >= 490
        assert train.max() < test.min()


@pytest.mark.slow
@needs("bike_sharing_hour.csv.gz")
def test_bike_sharing_is_judged_by_the_future():
    run = ep.train(
        DATA / "bike_sharing_hour.csv.gz",
        target="cnt",
        drop=["casual", "registered"],
        time=25,
        models=["GradientBoosting"],
    )
    assert run.how == "in order of time"
    assert run.test.score >= 0.90
    assert 0.8 < run.interval["coverage"] <= 1


@pytest.mark.slow
@needs("mauna_loa_co2_monthly.csv.gz")
def test_months_of_carbon_dioxide():
    run = ep.train(
        DATA / "mauna_loa_co2_monthly.csv.gz",
        target="average",
        time=10,
        drop=["decimal_date", "deseasonalized", "ndays", "sdev", "unc"],
    )
    assert {p.name: p.kind for p in run.profile}["date"].startswith("date")
    assert run.how == "in order of time"
    # The growth has grown: a line through the years before falls behind it, and a constant is nowhere near.
    assert run.test.score > run.baseline_test + 2


def heavy_tails(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 3, n)
    return pa.table({"x": x, "z": rng.normal(size=n), "y": 2 * x + (0.3 + x) * rng.standard_exponential(n)})


@pytest.mark.parametrize("level", [0.1, 0.9])
def test_a_quantile_is_predicted_and_its_share_is_told(tmp_path, level):
    run = ep.train(heavy_tails(1500, 0), "y", quantile=level, time=6, progress=False)
    assert run.metric.name == f"pinball_{level}"
    assert abs(run.interval["coverage"] - level) < 0.07
    fresh = heavy_tails(20_000, 1)
    predicted = run.model_.predict(fresh)
    assert abs(np.mean(fresh["y"].to_numpy() <= predicted) - level) < 0.04
    x = fresh["x"].to_numpy()
    truth = 2 * x - (0.3 + x) * np.log1p(-level)
    assert np.mean(np.abs(predicted - truth)) < 0.5 * np.mean(np.abs(truth - np.mean(truth)))
    assert run.test.score < run.baseline_test
    y = run.test_part.y
    own = np.mean(np.maximum(level * (y - run.test_part.responses["predict"]), 0)) + np.mean(
        np.maximum((1 - level) * (run.test_part.responses["predict"] - y), 0)
    )
    assert run.test.score == pytest.approx(own, rel=1e-12)
    with pytest.raises(ep.exceptions.ParameterError, match="no errors of unseen rows"):
        run.model_.predict_interval(fresh)


def test_the_command_tells_the_share_in_its_page_and_its_script(tmp_path, capsys, monkeypatch):
    pa.csv.write_csv(heavy_tails(600, 2), tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    asked = ["train", "t.csv", "--target", "y", "--quantile", "0.75", "--time", "3", "--out", "o"]
    assert main(asked) == 0
    share = json.loads((tmp_path / "o" / "report.json").read_text())["prediction_interval"]["coverage"]
    words = f"{share:.1%} of the test rows are at or below their predicted quantile of 0.75"
    assert words in capsys.readouterr().out.replace("\n", " ")
    page = (tmp_path / "o" / "report.html").read_text()
    assert words in page
    assert "Above the line a target is below its predicted quantile, as 75% of the rows should be." in page
    assert "residual" not in page.lower().split("<script")[0]
    monkeypatch.setattr(sys, "argv", ["train.py"])
    runpy.run_path("o/train.py", run_name="__main__")
    assert f"{share:.1%} of 120 test rows" in capsys.readouterr().out
    table = ep.training.read_table("t.csv")
    assert np.array_equal(ep.load("reproduced.epi").predict(table), ep.load("o/model.epi").predict(table))
    # The search of one level does not go on with another one.
    again = ["train", "t.csv", "--target", "y", "--time", "4", "--resume", "o", "--quantile"]
    assert main([*again, "0.75"]) == 0
    assert "going on with a search" in capsys.readouterr().out
    assert main([*again, "0.5"]) == 2
    assert "whose metric was 'pinball_0.75'" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"quantile": 1.0}, "quantile=1.0; expected a number between 0 and 1"),
        ({"quantile": "0.5"}, "quantile='0.5'"),
        ({"quantile": 0.5, "metric": "mae"}, "scored by the pinball loss"),
        ({"quantile": 0.5, "task": "classification"}, "classes have no quantiles"),
    ],
)
def test_what_is_no_quantile_is_refused(given, said):
    with pytest.raises(ep.exceptions.ParameterError, match=said):
        ep.train(heavy_tails(50, 0), "y", time=1, **given)
