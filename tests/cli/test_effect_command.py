"""epicycle effect: the known effect of simulated data, what it writes and says, graphs, instruments, bad input."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import epicycle as ep
from epicycle import report
from epicycle.cli import main
from epicycle.exceptions import DataError

FILES = ["effect.json", "effect.py", "report.html", "report.json"]
GRAPH = "age, sex -> drug -> pressure; age, sex, diet -> pressure"


def patients(n=500, seed=0):
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(50, 10, n), rng.choice(["f", "m"], n)
    drug = rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 10 - (sex == "m") + 0.5))
    diet = rng.normal(size=n)
    pressure = 70 + age + 4 * (sex == "m") + diet - 6.0 * drug + rng.normal(0, 5, n)
    return {
        "age": age,
        "sex": sex.tolist(),
        "diet": diet,
        "drug": np.where(drug, "yes", "no").tolist(),
        "pressure": pressure,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CSV file, and two folders of the same command."""
    folder = tmp_path_factory.mktemp("effect")
    pa.csv.write_csv(pa.table(patients()), folder / "data.csv")
    (folder / "graph.txt").write_text(GRAPH)
    for name in ("one", "two"):
        command = ["effect", str(folder / "data.csv"), "--treatment", "drug", "--outcome", "pressure"]
        options = ["--graph", str(folder / "graph.txt"), "--out", str(folder / name), "--repeats", "3", "--seed", "2"]
        assert main([*command, *options, "--json"]) == 0
    return folder


def test_all_files_repeat_byte_for_byte(folder):
    assert sorted(p.name for p in (folder / "one").iterdir()) == FILES
    for name in FILES:
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


def test_the_planted_effect_is_found_where_the_plain_difference_misses_it(folder):
    found = json.loads((folder / "one" / "effect.json").read_text())
    low, high = found["interval"]
    assert low < -6 < high < 0
    named = {row["name"]: row for row in found["estimates"]}
    for name in ("aipw", "tmle", "regression", "ipw", "entropy"):
        assert named[name]["lower"] < -6 < named[name]["upper"], name
    assert named["difference"]["lower"] > -6  # the older take it, and have more
    assert found["identification"]["kind"] == "adjustment"
    assert found["identification"]["covariates"] == ["age", "sex", "diet"]
    assert all(test["passed"] for test in found["refutations"])
    assert (
        max(abs(row["after"]) for row in found["balance"]) < 0.1 < max(abs(row["before"]) for row in found["balance"])
    )


def test_columns_are_shown_with_their_own_kind_and_what_they_are_for(folder):
    columns = json.loads((folder / "one" / "report.json").read_text())["columns"]
    found = {row["name"]: (row["kind"], row["treatment"]) for row in columns}
    assert found["drug"] == ("number truth", "the treatment")  # of yes and no
    assert found["pressure"] == ("number", "the outcome")
    assert found["age"][0] == "number"
    assert found["sex"][0] == "category"
    given = patients(200)
    given["ward"] = [f"ward {i % 45}" for i in range(200)]
    run = ep.effect_table(pa.table(given), "drug", "pressure", graph=GRAPH, drop=["diet"], repeats=1)
    shown = {p.name: (p.kind, p.treatment) for p in run.profile}
    assert shown["diet"] == ("drop", "left out, as requested")
    assert shown["ward"] == ("category", "not adjusted for, by the graph")
    assert run.identification["covariates"] == ["age", "sex"]  # with diet, which is left out, there would be less noise
    run = ep.effect_table(pa.table(given), "drug", "pressure", repeats=1)
    assert {p.name: (p.kind, p.treatment) for p in run.profile}["ward"] == ("category", "left out: 45 levels")
    assert not any(row["name"].startswith("ward") for row in run.balance)


def test_the_page_has_pictures_and_doubts(folder):
    page = (folder / "one" / "report.html").read_text()
    for name in ("estimates", "overlap", "balance", "omitted"):
        assert f'data-figure="{name}"' in page
    assert "What would have to be true for this to be wrong" in page
    assert "drug = yes lowers pressure by" in page.lower()
    assert "An arrow that the graph leaves out could exist" in page
    record = json.loads((folder / "one" / "report.json").read_text())
    assert report.html(record) == page
    # A record from elsewhere, with holes, still makes a page.
    assert report.html({"effect": {"verdict": "?", "overlap": {"edges": [0, 1]}, "estimates": [{}], "balance": [{}]}})


def test_the_command_prints_the_conclusion(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    command = ["effect", str(folder / "data.csv"), "--treatment", "drug", "--outcome", "pressure", "--repeats", "1"]
    assert main([*command, "--drop", "diet"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "drug = yes lowers pressure by" in said
    assert "No graph was given" in said
    assert "The conclusion is wrong if one of these holds" in said
    assert sorted(p.name for p in (tmp_path / "epicycle-data-effect").iterdir()) == FILES
    written = json.loads((tmp_path / "epicycle-data-effect" / "effect.json").read_text())
    assert {row["name"].partition("=")[0] for row in written["balance"]} == {"age", "sex"}
    # The script repeats the analysis with its options.
    monkeypatch.setattr("sys.argv", ["effect.py"])
    exec((tmp_path / "epicycle-data-effect" / "effect.py").read_text(), {})
    assert written["verdict"] in capsys.readouterr().out


def test_a_hidden_confounder_leads_to_the_instrument_of_the_graph():
    rng = np.random.default_rng(0)
    lottery, hidden = rng.integers(0, 2, 2000), rng.normal(size=2000)
    school = (1.5 * lottery + hidden + rng.normal(size=2000) > 0.7).astype(int)
    table = pa.table(
        {"lottery": lottery, "school": school, "income": 2.0 * school + 2 * hidden + rng.normal(size=2000)}
    )
    graph = "lottery -> school -> income; talent -> school; talent -> income"
    run = ep.effect_table(table, "school", "income", graph=graph)
    assert run.identification["kind"] == "instrument"
    assert run.method == "2sls"
    assert run.interval[0] < 2 < run.interval[1]
    assert run.estimate("difference")["lower"] > 3
    assert any("by another way than the treatment" in doubt for doubt in run.doubts)
    with pytest.raises(DataError, match="school <- talent -> income cannot be blocked"):
        ep.effect_table(table, "school", "income", graph="talent -> school -> income; talent -> income")


def test_a_front_door_is_used_where_nothing_can_be_adjusted_for():
    """Smoking, tar and cancer: the formula of the graph."""
    rng = np.random.default_rng(1)
    n = 3000
    genes = rng.random(n) < 0.5
    smoking = rng.random(n) < 0.2 + 0.6 * genes
    tar = rng.random(n) < 0.1 + 0.7 * smoking
    cancer = rng.random(n) < 0.1 + 0.3 * tar + 0.4 * genes
    table = pa.table({"smoking": smoking, "tar": tar, "cancer": cancer})
    graph = "smoking -> tar -> cancer; genes -> smoking; genes -> cancer"
    run = ep.effect_table(table, "smoking", "cancer", graph=graph)
    assert (run.identification["kind"], run.method) == ("formula", "tables")
    assert run.interval[0] < 0.21 < run.interval[1]  # 0.7 times 0.3
    assert run.estimate("difference")["lower"] > 0.3
    assert "sum_{tar}" in run.identification["words"][0]
    assert any("what carries the effect" in doubt for doubt in run.doubts)
    assert "formula of the graph" in report.html(run.record())


@pytest.mark.slow
def test_a_front_door_of_numbers_is_evaluated_by_regression():
    rng = np.random.default_rng(1)
    n = 1000
    genes = rng.random(n) < 0.5
    smoking = rng.random(n) < 0.2 + 0.6 * genes
    tar = 0.7 * smoking + rng.normal(size=n)
    table = pa.table({"smoking": smoking, "tar": tar, "cancer": 2 * tar + 3.0 * genes + rng.normal(size=n)})
    graph = "smoking -> tar -> cancer; genes -> smoking; genes -> cancer"
    run = ep.effect_table(table, "smoking", "cancer", graph=graph)
    assert run.method == "regression"
    assert run.interval[0] < 1.4 < run.interval[1]


def test_a_treatment_of_several_values():
    rng = np.random.default_rng(1)
    n = 600
    age = rng.normal(size=n)
    dose = np.array(["high", "low", "none"])[np.argmax(rng.normal(size=(n, 3)) + age[:, None] * [0.5, 0, -0.5], axis=1)]
    health = np.select([dose == "low", dose == "high"], [1.0, 3.0]) - 2 * age + rng.normal(size=n)
    table = pa.table({"age": age, "dose": dose, "health": health})
    run = ep.effect_table(table, "dose", "health", control="none", level="high", repeats=1)
    assert run.levels == ("none", "high")
    assert run.rows == np.sum(dose != "low")
    assert run.interval[0] < 3 < run.interval[1]
    found = {row["level"]: row for row in run.contrasts}
    assert set(found) == {"low", "high"}
    assert found["low"]["lower"] < 1 < found["low"]["upper"]
    assert found["high"]["effect"] == pytest.approx(run.effect, rel=1e-9)
    assert found["high"]["lower"] < run.interval[0]  # for both at once
    assert "each value of dose against none" in str(run)
    page = report.html(run.record())
    assert "Each value against none" in page
    categories = table.slice(0, 150).set_column(1, "dose", table["dose"].slice(0, 150).dictionary_encode())
    assert ep.effect_table(categories, "dose", "health", repeats=1).levels == ("high", "none")
    with pytest.raises(ValueError, match="control='much': 'dose' has no such value; it has high, low, none"):
        ep.effect_table(table, "dose", "health", control="much")
    with pytest.raises(ValueError, match="level='none': is the control"):
        ep.effect_table(table, "dose", "health", control="none", level="none")


def test_rows_without_a_counterpart_are_told_in_the_conclusion():
    """Nine in ten are of a group in which nobody is treated; the scores lie in two clusters."""
    rng = np.random.default_rng(0)
    far = rng.random(3000) < 0.9
    t = (rng.random(3000) < np.where(far, 0.001, 0.5)).astype(int)
    t[far] = 0
    t[np.flatnonzero(far)[0]] = 1
    table = pa.table(
        {"t": t, "abroad": far.astype(int), "age": rng.normal(size=3000), "y": 2.0 * t + rng.normal(size=3000)}
    )
    run = ep.effect_table(table, "t", "y", repeats=1)
    assert run.overlap["outside"] == pytest.approx(far.mean())
    assert "but for 90% of the rows, which have hardly any like them in the other arm, by extrapolation" in run.verdict
    assert any("abroad > 0.5 (100% of" in doubt for doubt in run.doubts)


def test_missing_rows_and_no_effect_are_said():
    given = patients(300, seed=1)
    given["pressure"] = given["pressure"] + 6.0 * (np.array(given["drug"]) == "yes")
    given["drug"] = [None if i < 20 else value for i, value in enumerate(given["drug"])]
    run = ep.effect_table(pa.table(given), "drug", "pressure", repeats=1)
    assert run.rows == 280
    assert "20 rows without drug or pressure" in run.warnings[0].text
    assert not run.is_clear
    assert "can be told from noise" in str(run)
    assert "does not show that there is none" in run.doubts[-1]


def test_an_outcome_without_noise(tmp_path):
    rng = np.random.default_rng(0)
    age, t = rng.normal(size=80), (rng.random(80) < 0.5).astype(int)
    run = ep.effect_table(pa.table({"age": age, "t": t, "y": 2 * t}), "t", "y", repeats=1, out=tmp_path / "run")
    assert run.effect == pytest.approx(2)
    assert run.interval[0] > 0
    assert "robustness_value" not in run.sensitivity
    assert not any("more than two standard errors away" in doubt for doubt in run.doubts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--treatment", "pill", "--outcome", "pressure"], "treatment='pill': the table has no such column"),
        (["--treatment", "age", "--outcome", "pressure"], "treatment='age': holds 500 different values"),
        (["--treatment", "drug", "--outcome", "drug"], "both are 'drug'"),
        (["--treatment", "drug", "--outcome", "pressure", "--graph", "drug -> x"], "graph: has no node 'pressure'"),
        (["--treatment", "drug", "--outcome", "pressure", "--graph", "pressure -> drug"], "there is no effect"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(folder, capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["effect", str(folder / "data.csv"), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []
