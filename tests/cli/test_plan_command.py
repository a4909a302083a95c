"""epicycle plan: what it writes, prints and exits with."""

import csv
import json

import numpy as np
import pytest

from epicycle.cli import main
from epicycle.control import policy_iteration, worlds

GRID = "step_reward: -0.02\nslip: 0.2\n\n...+\n.#.-\n....\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    (folder / "grid.txt").write_text(GRID)
    for name in ("one", "two"):
        assert main(["plan", str(folder / "grid.txt"), "--out", str(folder / name), "--json"]) == 0
    return folder


def test_all_files_repeat_byte_for_byte(folder):
    names = sorted(p.name for p in (folder / "one").iterdir())
    assert names == ["policy.csv", "report.html", "report.json"]
    for name in names:
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


def test_the_table_holds_the_solution(folder):
    exact = policy_iteration(worlds.russell_norvig_grid())
    with (folder / "one" / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == [f"{i},{j}" for i, j in exact.mdp.states]
    np.testing.assert_allclose([float(row["value"]) for row in rows], exact.values, rtol=1e-12)
    acts = ~exact.mdp.is_terminal
    assert [row["action"] for row in rows] == [a if act else "" for a, act in zip(exact.policy, acts, strict=True)]
    assert all(float(row["lower"]) <= v <= float(row["upper"]) for row, v in zip(rows, exact.values, strict=True))


def test_the_page_shows_grid_bounds_and_certificate(folder):
    page = (folder / "one" / "report.html").read_text()
    assert 'data-figure="grid"' in page
    assert 'data-figure="residuals"' in page
    assert "<strong>11 states</strong> and 4 actions by policy iteration, with proof." in page
    assert page.count("→") >= 3
    assert "http://" not in page.replace("http://www.w3.org", "")
    record = json.loads((folder / "one" / "report.json").read_text())
    assert record["planning"]["certificate"]["holds"]
    assert len(record["planning"]["policy"]) == 11


def test_it_prints_policy_values_and_certificate(folder, capsys):
    assert main(["plan", str(folder / "grid.txt"), "--out", str(folder / "three")]) == 0
    printed = capsys.readouterr().out
    a, b, c, _, d, e = policy_iteration(worlds.russell_norvig_grid()).values[:6]
    assert f"→ {a:6.3f}  → {b:6.3f}  → {c:6.3f}  =  1.000\n" in printed
    assert f"↑ {d:6.3f}     #      ↑ {e:6.3f}  = -1.000\n" in printed
    assert "certificate: loss of the policy" in printed
    assert "holds" in printed


@pytest.mark.parametrize("method", ["value_iteration", "modified_policy_iteration", "linear_program"])
def test_methods_agree_on_a_file(tmp_path, capsys, method):
    steps = [["a", "wait", "a", 1, 1], ["a", "risk", "b", 0.6, 3], ["a", "risk", "a", 0.4, 3], ["b", "wait", "b"]]
    (tmp_path / "model.json").write_text(json.dumps({"transitions": [*steps, ["c", "go", "a"]], "discount": 0.9}))
    command = ["plan", str(tmp_path / "model.json"), "--method", method, "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["action"] for row in found["policy"]] == ["wait", "wait", "go"]
    np.testing.assert_allclose([row["value"] for row in found["policy"]], [10, 0, 9], rtol=1e-7, atol=1e-6)
    assert found["unreachable"] == ["c"]
    assert 'data-figure="values"' in (tmp_path / "out" / "report.html").read_text()


def test_bad_input_is_named_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "model.json").write_text('{"transitions": [["a", "go", "a", 0.5]]}')
    for arguments, message in (
        ([str(tmp_path / "model.json")], "state 'a', action 'go' add up to 0.5; expected 1"),
        ([str(tmp_path / "none.txt")], "No such file"),
        ([str(tmp_path / "model.json"), "--method", "fast"], "--method fast: expected auto"),
        ([str(tmp_path / "model.json"), "--discount", "1.5"], "add up to 0.5"),
    ):
        assert main(["plan", *arguments, "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_average_rewards_and_long_lists(tmp_path, capsys):
    ring = [[f"s{i}", "on", f"s{(i + 1) % 60}", 1, i] for i in range(60)]
    (tmp_path / "ring.json").write_text(json.dumps({"transitions": ring, "criterion": "average"}))
    assert main(["plan", str(tmp_path / "ring.json"), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "mean reward of a step: 29.5" in printed
    assert "and 20 more states, in policy.csv" in printed
