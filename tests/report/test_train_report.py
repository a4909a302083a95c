"""What a report of a training run shows: columns, scores of classes, gain, groups, explanations, two runs."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from parsed_page import parsed
from sklearn.metrics import precision_recall_fscore_support, r2_score

import epicycle as ep
from epicycle import report
from epicycle.automl.checks._correlations import rank_correlations
from epicycle.automl.checks._group_rates import group_rates
from epicycle.automl.diagnosis._explanations import Explained, partial_dependence, waterfalls
from epicycle.automl.diagnosis._learning_curve import affordable_plan
from epicycle.automl.diagnosis._surrogate import surrogate_tree
from epicycle.cli import main
from epicycle.cli._report import curves_of, report_files
from epicycle.exceptions import DataError, DataFileError
from epicycle.report._score_tables import class_scores, gain
from epicycle.report.curves import wilson


def houses(n=400, seed=0):
    rng = np.random.default_rng(seed)
    area, rooms = rng.gamma(4.0, 30.0, n), rng.integers(1, 8, n)
    place = rng.choice(["town", "coast", "hills"], n, p=[0.6, 0.3, 0.1])
    price = 1_000 * area * (1 + (place == "coast")) + 5_000 * rooms + 10_000 * rng.normal(size=n)
    return pa.table(
        {
            "area": pa.array(area, mask=rng.random(n) < 0.05),
            "rooms": rooms,
            "place": place.tolist(),
            "owner": rng.choice(["a", "b"], n).tolist(),
            "price": price,
        }
    )


@pytest.fixture(scope="module")
def run():
    with pytest.MonkeyPatch.context() as patch:  # time for the explanations, also on a loaded machine
        patch.setattr("epicycle.automl._job._DIAGNOSES_SHARE", 0.8)
        return ep.train(houses(), "price", time=8, models=["ridge", "gradientboosting"], group_report="place")


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report_files(run)["report.html"](path)
    return path.read_text()


def test_the_page_shows_scores_columns_and_explanations(run, page):
    parsed(page)
    assert len(page.encode()) < 1_500_000
    for name in (
        "predicted",
        "residuals",
        "correlations",
        "missing",
        "importances",
        "dependence-0",
        "row-0",
        "column-0",
    ):
        assert f'data-figure="{name}"' in page, name
    for words in (
        "All metrics",
        "root mean squared error",
        "Prediction intervals at 90%",
        "Rates by group",
        "The target",
    ):
        assert words in page
    assert set(run.tests) >= {"r2", "rmse", "mae"}
    kept = {profile.name: profile.association for profile in run.profile}
    assert kept["area"] > kept["owner"]
    assert kept["price"] is None


def test_the_notebook_form_is_short_and_closed(run):
    shown = run._repr_html_()
    assert len(shown) < 20_000
    assert "root mean squared error" in shown
    assert shown.count("<div") == shown.count("</div")
    assert "<script" not in shown
    names = [row["name"].partition("(")[0] for row in run.leaderboard if row["score_mean"] is not None]
    board = shown[shown.index("leaderboard") :]
    assert board[: board.index("</table>")].count("<tr>") == 1 + min(len(names), 6)


def test_partial_dependence_is_the_mean_over_rows_with_the_value():
    table = houses()
    kinds = {"area": "number", "rooms": "number", "place": "category", "owner": "category", "price": "target"}
    model = ep.TableModel(ep.GradientBoostingRegressor(n_estimators=30, random_state=0), kinds).fit(table)
    explained = Explained(model, table, table["price"].to_numpy(), None)
    found = {one["name"]: one for one in partial_dependence(explained, ["rooms", "place", "area"], kinds, 0)}
    rows = found["rooms"]["rows"]
    assert rows == 200
    some = table.take(pa.array(np.random.default_rng(0).permutation(400)[:200]))  # other rows: close, not equal
    for value, mean in zip(found["rooms"]["x"], found["rooms"]["mean"], strict=True):
        changed = some.set_column(1, "rooms", pa.array(np.full(200, int(value))))
        assert mean == pytest.approx(model.predict(changed).mean(), rel=0.15)
    assert dict(zip(found["place"]["levels"], found["place"]["mean"], strict=True))["coast"] == max(
        found["place"]["mean"]
    )
    assert found["area"]["mean"][-1] > found["area"]["mean"][0]
    falls = waterfalls(explained, np.arange(400) + 1_000, table, 30.0, 0)
    assert [row["title"].split(",")[0] for row in falls["rows"]] == ["Typical row", "Best row", "Worst row"]
    losses = (model.predict(table) - table["price"].to_numpy()) ** 2
    assert falls["rows"][2]["title"].endswith(f"number {1_000 + int(losses.argmax()):,} of the file")
    for row in falls["rows"]:
        total = row["start"] + sum(part["mean"] for part in row["contributions"])
        assert total == pytest.approx(row["end"])  # four columns: none is left out
    assert falls["summary"][0]["name"] in ("area", "place")


def test_scores_of_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, q = rng.choice(list("abc"), 300), rng.choice(list("abc"), 300)
    found = class_scores(report.curves.confusion(y, q))
    for k, key in enumerate(("precision", "recall", "f1", "rows")):
        expected = precision_recall_fscore_support(y, q)[k]
        assert [row[key] for row in found] == pytest.approx(expected.tolist())
    assert found[0]["recall_interval"] == pytest.approx(wilson(found[0]["recall"], found[0]["rows"]))
    lone = class_scores({"labels": ["a", "b"], "counts": [[3, 0], [2, 0]]})
    assert (lone[1]["precision"], lone[1]["recall"], lone[1]["f1"]) == (None, 0.0, 0.0)


def test_wilson_holds_the_share_as_often_as_it_says():
    n, p = 40, 0.15
    from scipy.stats import binom

    held = sum(binom.pmf(k, n, p) for k in range(n + 1) if wilson(k / n, n)[0] <= p <= wilson(k / n, n)[1])
    assert 0.93 < held < 0.97
    assert wilson(0.0, 10)[0] == 0.0 < wilson(0.0, 10)[1]
    assert wilson(1.0, 10)[1] == 1.0 > wilson(1.0, 10)[0]


def test_gain_and_lift_count_the_positives_among_the_first_rows():
    rng = np.random.default_rng(1)
    score = rng.random(5_000)
    positive = rng.random(5_000) < score**3
    found = gain(positive, score)
    order = np.argsort(-score)
    for rows, share, lift in zip(found["rows"], found["found"], found["lift"], strict=True):
        first = positive[order[: round(rows * 5_000)]].sum()
        assert share == pytest.approx(first / positive.sum())
        assert lift is None or lift == pytest.approx(share / rows)
    assert found["prevalence"] == pytest.approx(positive.mean())
    assert gain(positive, np.zeros(5_000))["found"] == [0.0, 1.0]  # ties are one step
    with pytest.raises(DataError, match="one class only"):
        gain(np.ones(5, bool), np.arange(5.0))


def test_rates_by_group_are_those_of_the_groups_and_their_intervals():
    rng = np.random.default_rng(2)
    sex = rng.choice(["f", "m"], 600)
    y = np.where(rng.random(600) < 0.3, "yes", "no")
    q = np.where(sex == "f", "yes", y)
    found = group_rates(pa.table({"sex": sex.tolist()}), "sex", y, q, np.array(["no", "yes"]))
    rates = {row["group"]: row["rates"] for row in found["groups"]}
    assert rates["m"]["accuracy"]["value"] == 1.0
    assert rates["f"]["accuracy"]["value"] == pytest.approx((y[sex == "f"] == "yes").mean())
    assert rates["f"]["predicted yes"]["value"] == 1.0
    assert rates["f"]["false positive rate"]["value"] == 1.0
    assert rates["m"]["false positive rate"]["value"] == 0.0
    assert "accuracy: " in found["verdict"]
    assert "recall of yes" not in found["verdict"]
    assert "predicted yes: 33% for m, 100% for f" in found["verdict"]
    ages = pa.table({"age": rng.normal(40, 10, 600)})
    four = group_rates(ages, "age", rng.normal(size=600), np.zeros(600), None)
    assert sum(row["rows"] for row in four["groups"]) == 600
    assert len(four["groups"]) == 4
    assert "No two groups" in four["verdict"]
    with pytest.raises(DataError, match="group_report='agee'"):
        ep.train(houses(), "price", time=1, group_report="agee")


def test_the_learning_curve_ends_with_the_scores_of_the_search(run):
    found, best = run.findings["bias_variance"], run.leaderboard[0]
    rows = [int(n) for n in found.curve.x]
    assert rows == sorted(rows)
    assert len(rows) >= 2
    assert rows[-1] == best["rows"] == max(row["rows"] for row in run.leaderboard)
    n_folds = found.curve.validation.shape[1]
    assert 2 <= n_folds <= best["n_folds"]
    if n_folds == best["n_folds"]:
        assert found.curve.validation[-1].mean() == pytest.approx(best["score_mean"])
    assert found.validation_score == pytest.approx(found.curve.validation[-1].mean())
    # The verdict is about the last point of the picture.
    assert f"{found.validation_score:.4g}" in found.verdict


def test_the_sizes_of_the_learning_curve_follow_the_time():
    assert affordable_plan(5, 1_000, seconds_per_fit=0.1, seconds=10) == ([100, 300, 600], 5)
    assert affordable_plan(5, 1_000, seconds_per_fit=5.0, seconds=10) == ([100, 300], 4)
    assert affordable_plan(2, 1_000, seconds_per_fit=5.0, seconds=10.2) == ([100, 300, 600], 2)
    assert affordable_plan(5, 1_000, seconds_per_fit=100.0, seconds=10) == ([], 0)
    assert affordable_plan(5, 15, seconds_per_fit=0.1, seconds=10) == ([], 0)


def test_the_surrogate_tree_partitions_the_rows_and_imitates_the_model():
    table = houses(1_000)
    kinds = {"area": "number", "rooms": "number", "place": "category", "owner": "category", "price": "target"}
    model = ep.TableModel(ep.GradientBoostingRegressor(n_estimators=30, random_state=0), kinds).fit(table)
    test = houses(500, seed=1)
    explained = Explained(model, test, test["price"].to_numpy(), None)
    found = surrogate_tree(explained, table, kinds, 0)
    leaves = []

    def walk(node):
        children = node.get("children", [])
        if not children:
            leaves.append(node)
            return
        assert sum(child["share"] for child in children) == pytest.approx(node["share"])
        mean = sum(child["share"] * child["mean"] for child in children) / node["share"]
        assert mean == pytest.approx(node["mean"])
        for child in children:
            walk(child)

    walk(found["root"])
    assert 2 < len(leaves) <= 8
    assert found["root"]["mean"] == pytest.approx(model.predict(table).mean())
    assert 0.6 < found["fidelity"] < 1
    conditions = json.dumps(found)
    assert '"place = coast"' in conditions
    assert "owner" not in conditions
    # No column but texts and identifiers of many levels: nothing to split.
    codes = pa.table({"code": [str(i) for i in range(200)], "y": np.arange(200.0)})
    model = ep.TableModel(ep.Ridge(), {"code": "category", "y": "target"}).fit(codes)
    assert surrogate_tree(Explained(model, codes, codes["y"].to_numpy(), None), codes, {"code": "category"}, 0) == {}


def test_a_waterfall_goes_from_the_mean_to_the_row():
    parts = [{"name": "a", "value": "1", "mean": 3.0, "se": 0.1}, {"name": "b", "value": "x", "mean": -1.0, "se": 0.2}]
    row = {"title": "A row", "of": "prediction", "target": 8, "start": 5.0, "end": 7.5, "contributions": parts}
    page = report.html({"explanations": {"contributions": {"rows": [row]}}})
    figure = page[page.index('data-figure="row-0"') :]
    bars = [dict(re.findall(r'(x|width|class)="([^"]*)"', tag)) for tag in re.findall(r"<rect[^>]*>", figure)]
    assert [bar["class"] for bar in bars] == ["bar blue", "bar vermilion", "bar blue"]  # what is not listed comes last
    ends = [(float(bar["x"]), float(bar["x"]) + float(bar["width"])) for bar in bars]
    # Each bar begins where the one before has ended, and a unit is as long everywhere.
    assert ends[1][1] == pytest.approx(ends[0][1], abs=0.2)
    assert ends[2][0] == pytest.approx(ends[1][0], abs=0.2)
    unit = (ends[0][1] - ends[0][0]) / 3
    assert [b - a for a, b in ends[1:]] == pytest.approx([unit, 0.5 * unit], abs=0.3)
    for words in ("a = 1", "+3.00 ± 0.20", "-1.00 ± 0.40", "all other columns", "+0.50"):
        assert words in figure


def test_what_the_time_did_not_allow_is_said():
    skipped = {"bias_variance": "skipped: out of time", "threshold": "not needed: not two classes"}
    page = report.html({"skipped": {**skipped, "contributions": "skipped: took longer than expected"}})
    assert "Left out for want of time: the learning curve and contributions." in page
    assert "the threshold" not in page


def test_the_worst_rows_are_shown_where_no_slices_are():
    page = report.html({"worst_rows": {"row of the file": [7, 3], "error": [12.5, -4.0]}})
    assert "Rows with the largest losses" in page
    assert '<td class="n">7</td>' in page


def test_advice_about_another_model_is_not_a_next_step():
    finding = {
        "slot": "optimizer_or_objective",
        "next_steps": ["change the penalty"],
        "table": {"model": ["Ridge", "B"]},
    }
    board = [
        {"name": "B(x=1)", "method": "B", "score_mean": 0.9},
        {"name": "Ridge()", "method": "Ridge", "score_mean": 0.8},
    ]
    page = report.html({"leaderboard": board, "findings": [finding]})
    assert "<h2>Next steps</h2>" not in page
    assert "Optimiser or objective of Ridge" in page
    page = report.html({"leaderboard": board[::-1], "best": "Ridge()", "findings": [finding]})
    assert "<h2>Next steps</h2>" in page


def test_the_chosen_threshold_is_in_the_curve(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    table = pa.table(
        {"x": x, "z": rng.normal(size=400), "y": np.where(x + rng.normal(size=400) > 1, "yes", "no").tolist()}
    )
    run = ep.train(table, "y", time=4, models="logistic", metric="log_loss")
    record = json.loads(_json_of(run, tmp_path))
    curve = record["curves"]["threshold"]
    assert curve["chosen"] == pytest.approx(run.findings["threshold"].threshold)
    assert curve["default"] == run.findings["threshold"].default_threshold
    # The rows with the largest losses have their numbers in the file.
    rows = run.examples["row of the file"]
    assert set(rows) <= set(run.test_part.rows.tolist())
    assert [table["y"][row].as_py() for row in rows] == run.examples["target"]


def _json_of(run, folder):
    report_files(run)["report.json"](folder / "report.json")
    return (folder / "report.json").read_text()


def test_rank_correlations_are_spearmans():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    X[:, 1] += X[:, 0]
    X[::7, 2] = np.nan
    y = np.exp(X[:, 0])
    found = rank_correlations(X, ["a", "b", "c"], [], {"b": 0.5}, ("y", y))
    assert found["names"] == ["y", "b", "a", "c"]
    at = {name: k for k, name in enumerate(found["names"])}
    assert found["values"][at["y"]][at["a"]] == 1.0
    known = ~np.isnan(X[:, 2])
    assert found["values"][at["b"]][at["c"]] == pytest.approx(spearmanr(X[known, 1], X[known, 2])[0], abs=1e-4)
    assert rank_correlations(X, ["a", "b", "c"], [0, 1, 2], {}, None) == {}


def test_curves_of_two_classes_have_gain_and_classes():
    rng = np.random.default_rng(4)
    p = rng.random(200)
    y = np.where(rng.random(200) < p, "yes", "no")
    responses = {"predict": np.where(p > 0.5, "yes", "no"), "predict_proba": np.column_stack([1 - p, p])}
    found = curves_of(y, responses, np.array(["no", "yes"]), None)
    assert {"gain", "class_scores", "confusion", "roc"} <= set(found)
    parsed(report.html({"curves": found}))
    numbers = curves_of(p, {"predict": p + 0.1 * rng.normal(size=200)}, None, None, {"half_width": 0.2})
    assert r2_score(numbers["predictions"]["actual"], numbers["predictions"]["predicted"]) > 0.5
    assert numbers["predictions"]["half_width"] == 0.2


def test_two_runs_side_by_side(tmp_path, capsys):
    path = tmp_path / "houses.parquet"
    pa.parquet.write_table(houses(), path)
    for name, models in (("straight", "ridge"), ("boosted", "gradientboosting")):
        arguments = ["train", str(path), "--target", "price", "--time", "1.5", "--models", models]
        assert main([*arguments, "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    out = tmp_path / "both"
    runs = [str(tmp_path / "straight"), str(tmp_path / "boosted" / "report.json")]
    assert main(["report", "--compare", *runs, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "boosted is better than straight" in said or "cannot be distinguished" in said
    page = (out / "report.html").read_text()
    parsed(page)
    assert "Two runs side by side" in page
    assert "Importances in straight" in page
    assert "On the 80 test rows of both" in page
    record = json.loads((out / "report.json").read_text())
    assert [one["name"] for one in record["comparison"]["runs"]] == ["straight", "boosted"]
    assert main(["report", "--compare", str(tmp_path), runs[0]]) == 2
    assert "expected the folder of a run" in capsys.readouterr().err


def test_only_what_was_scored_is_ranked_and_counted():
    """By rows and folds first: scores on two folds and on five cannot be compared."""
    rows = [
        {"name": "a", "method": "A", "score_mean": 0.8, "rows": 100, "n_folds": 5, "status": "chosen"},
        {"name": "b", "method": "B", "score_mean": 0.9, "rows": 100, "n_folds": 2, "status": "out of time"},
        {"name": "c", "method": "C", "score_mean": 0.7, "rows": 100, "n_folds": 5, "status": "finished"},
        {"name": "d", "method": "D", "score_mean": None, "n_folds": 0, "status": "stopped after 9 s: too slow"},
    ]
    given = {"leaderboard": rows, "best": "a", "metric": {"name": "accuracy", "label": "accuracy"}}
    page = report.html({**given, "data": {"target": "y", "rows": 125}})
    words = "".join(parsed(page).texts)
    assert "is the best of 3 candidates" in words
    assert "1 without a score (stopped after 9 s: too slow): D." in words
    board = page[page.index('id="models"') :]
    assert board.index(">c<") < board.index(">b<")


def test_models_with_more_rows_than_the_chosen_one_have_no_rank_beside_it():
    rows = [
        {"name": "a", "method": "A", "score_mean": 0.8, "rows": 100, "n_folds": 2, "status": "chosen"},
        {"name": "b", "method": "B", "score_mean": 0.7, "rows": 900, "n_folds": 5, "status": "finished"},
        {"name": "c", "method": "C", "score_mean": 0.6, "rows": 100, "n_folds": 2, "status": "behind"},
    ]
    page = report.html({"leaderboard": rows, "best": "a"})
    board = page[page.index('id="models"') :]
    assert board.index(">a<") < board.index(">c<") < board.index(">b<")
    assert '<td class="n">2</td><td>c' in board
    assert '<td class="n"></td><td>b' in board


def test_a_page_says_nothing_of_the_folder_of_its_table():
    page = report.html({"reproduce": "import sys\n\nDATA = ['/data/me/a.csv', '/data/me/b.csv']\n"})
    assert "/data/me" not in page
    assert "a.csv" in page
    assert "b.csv" in page
    page = report.html({"reproduce": "DATA = '/data/me/f.db::select a/b from t'"})
    assert "/data/me" not in page
    assert "f.db::select a/b from t" in page


def test_columns_of_numbers_have_the_decimals_that_they_need():
    table = {"hum": [0.87, 0.9, 1], "year": [2011, 2012, 1998], "rows": [14, 16_454, 7], "loss": [0.00123, 12_345.6, 7]}
    page = report.html({"worst_rows": table})
    cells = [row.split("</td>")[0] for row in page.split('<td class="n">')[1:]]
    assert cells[0::4] == ["0.87", "0.90", "1.00"]
    assert cells[1::4] == ["2011", "2012", "1998"]
    assert cells[2::4] == ["14", "16,454", "7"]
    assert cells[3::4] == ["0.001230", "12,346", "7"]


def test_numbers_are_written_as_people_write_them():
    from epicycle.report._plain import brief

    found = [brief(value) for value in (0.05, 14_400.0, 28.5, 1e-7, 3, None, -0.1, 1234567.0, 14_452.7)]
    assert found == ["0.05", "14,400", "28.5", "1e-7", "3", "–", "-0.1", "1,234,567", "14,453"]


def test_a_page_is_printed_by_the_browser_or_refused_before_any_work(tmp_path, capsys, monkeypatch):
    from epicycle.cli import _pdf

    if any(_pdf.shutil.which(name) for name in _pdf._NAMES):
        page, target = tmp_path / "page.html", tmp_path / "page.pdf"
        report.write({"title": "Wine"}, page)
        _pdf.print_page(page, target, _pdf.browser())
        assert target.read_bytes().startswith(b"%PDF")
        with pytest.raises(DataFileError, match="did not print the page"):
            _pdf.print_page(page, tmp_path / "missing" / "page.pdf", "false")
    monkeypatch.setattr(_pdf.shutil, "which", lambda name: None)
    assert main(["train", "iris", "--pdf", "--out", str(tmp_path / "run")]) == 2
    assert "--pdf: needs Chromium" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
