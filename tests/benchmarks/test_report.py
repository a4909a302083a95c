"""Tables, RESULTS.md, and the command line."""

import json
import math

import fake_benchmarks as fake
import pytest

from benchmarks import __main__ as cli, machine, report, serve
from benchmarks.task import Outcome, Target, Task
from benchmarks.tasks import all_tasks

MACHINE = {"processor": "abacus", "cores": "2", "memory": "1 GiB", "system": "Linux", "Python": "3.11", "numpy": "2.0"}
TASK = Task(
    name="task",
    title="title",
    description="description",
    make=fake.make,
    implementations=(),
    targets=(
        Target("twice as fast", lambda outcomes: 1.9, at_least=2.0),
        Target("small", lambda outcomes: 1.0, at_most=2.0),
        Target("unknown", lambda outcomes: math.nan, at_most=2.0),
    ),
)


def rows(text):
    """The cells of every table row, by the first cell."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {line[0]: line[1:] for line in lines}


@pytest.fixture
def outcomes():
    found = (
        Outcome("peer", "peer", None, [2.0], [3 * 2**20], [0], {"error": 1e-12}, True),
        Outcome("sloppy", "peer", None, [0.5], [2**20], [0], {"error": 1.0}, False),
        Outcome("gone", "peer", failure="failed: ValueError: no"),
        Outcome("files", "baseline", None, [0.25], [0], [0]),
        Outcome("ours", "epicycle", 1e-4, [0.002], [2**20], [0], {"error": 1e-12}, True),
    )
    return {o.name: o for o in found}


def test_table(outcomes):
    text = report.section(TASK, outcomes, command="python -m benchmarks task", machine=MACHINE)
    table = rows(text)
    assert table["implementation"] == ["tol", "time", "IQR", "error", "peak memory", "speed"]
    assert table["peer"] == ["", "2 s", "0 us", "1e-12", "3 MiB", "1.00x"]
    assert table["sloppy †"] == ["", "500 ms", "0 us", "1", "1 MiB", ""]
    assert table["gone"] == ["", "failed", "", "", "", ""]
    assert table["files"] == ["", "250 ms", "0 us", "", "0 MiB", ""]
    assert table["**ours**"] == ["0.0001", "2 ms", "0 us", "1e-12", "1 MiB", "1000.00x"]
    assert "- gone: failed: ValueError: no" in text
    assert table["twice as fast"] == ["at least 2", "1.9", "**no**"]
    assert table["small"] == ["at most 2", "1", "yes"]
    assert table["unknown"] == ["at most 2", "", "not measured"]
    assert "`python -m benchmarks task` on abacus, 2 cores, 1 GiB, Linux; Python 3.11, numpy 2.0." in text
    assert "no measurement" in report.section(TASK, outcomes, command="", machine=MACHINE, quick=True)


def test_results_keep_the_sections_of_other_tasks(tmp_path):
    path = tmp_path / "RESULTS.md"
    report.update_results(path, {"b": "second\n", "a": "first\n"}, ["a", "b", "c"])
    report.update_results(path, {"b": "second again\n"}, ["a", "b", "c"])
    text = path.read_text()
    assert text.startswith("# Benchmarks")
    assert "first\n" in text
    assert "second again\n" in text
    assert "second\n" not in text
    assert text.index("first") < text.index("second again")
    report.update_results(path, {}, ["b"])  # a task that no longer exists leaves with its section
    assert "first\n" not in path.read_text()
    before = path.read_text()
    report.update_results(path, {}, ["b"])
    assert path.read_text() == before


def test_the_load_test_of_the_server_has_a_section_that_stays(tmp_path):
    text = serve.section({"failed requests": "0"}, {"p99 in milliseconds": (25.0, 20.0, False)})
    assert rows(text)["failed requests"] == ["0"]
    assert rows(text)["p99 in milliseconds"] == ["at most 20", "25", "**no**"]
    path = tmp_path / "RESULTS.md"
    report.update_results(path, {"serve": text, "a": "first\n"}, ["a"])
    report.update_results(path, {"a": "first again\n"}, ["a"])
    assert path.read_text().index("first again") < path.read_text().index("## serve: Load test")


def test_the_introduction_in_the_repository_is_the_one_of_the_code():
    assert report.RESULTS.read_text().startswith(report.INTRODUCTION)


def test_json_holds_every_measurement(outcomes, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "JSON_FOLDER", tmp_path / "results")
    path = report.save_json(TASK, outcomes, command="c", machine=MACHINE, quick=True)
    assert path.name == "task-quick.json"
    content = json.loads(path.read_text(), parse_constant=pytest.fail)  # strict: no NaN
    ours = next(o for o in content["outcomes"] if o["name"] == "ours")
    assert ours["seconds"] == [0.002]
    assert ours["median"] == 0.002
    assert [t["value"] for t in content["targets"]] == [1.9, 1.0, None]


def test_machine_names_the_libraries():
    about = machine.describe()
    assert about["numpy"].count(".") == 2
    assert int(about["cores"]) >= 1
    assert about["memory"].endswith("GiB")


def test_command_line(capsys):
    assert cli.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(all_tasks())
    assert {"linear_dense", "linear_ill", "logistic_binary", "logistic_multinomial", "out_of_core"} <= set(listed)
    for wrong in (["no_such_task"], ["--quick", "--write"], ["--repeats", "0"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(wrong)
        assert stop.value.code == 2


def test_a_run_from_the_command_line(tmp_path, monkeypatch, capsys):
    task = fake.RACE
    monkeypatch.setattr(cli, "all_tasks", lambda: {task.name: task})
    monkeypatch.setattr(report, "JSON_FOLDER", tmp_path / "results")
    monkeypatch.setattr(report, "RESULTS", tmp_path / "RESULTS.md")
    assert cli.main([task.name, "--repeats", "1", "--write"]) == 0
    written = (tmp_path / "RESULTS.md").read_text()
    printed = capsys.readouterr().out
    assert printed.strip() in written
    assert f"`python -m benchmarks {task.name} --repeats 1 --threads 2`" in written
    assert (tmp_path / "results" / f"{task.name}.json").exists()
    table = rows(printed)
    assert table["fast"][0] == "200 ms"
    assert table["slow"][-1] == "0.50x"
    assert table["**ours**"][-1] == "2.00x"


def test_a_failure_of_ours_is_the_exit_status(tmp_path, monkeypatch):
    failed = {"ours": Outcome("ours", "epicycle", failure="failed: ValueError: no")}
    monkeypatch.setattr(cli, "all_tasks", lambda: {"task": TASK})
    monkeypatch.setattr(cli, "run_task", lambda *args, **options: failed)
    monkeypatch.setattr(report, "JSON_FOLDER", tmp_path / "results")
    assert cli.main(["task"]) == 1
