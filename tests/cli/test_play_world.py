"""epicycle play ENV: learning from the shell, its report, its pictures, its errors."""

import base64
import io
import json
import re

import numpy as np
import pytest

import epicycle as ep
from epicycle import report
from epicycle.cli import main
from epicycle.control import policy_iteration, worlds

SHORT = ["--steps", "8000", "--seeds", "2", "--episodes", "20"]


@pytest.fixture(scope="module")
def cliff(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    command = ["play", "cliff-walk", "--agent", "q-learning", "--set", "learning_rate=0.5", *SHORT, "--json"]
    for name in ("one", "two"):
        assert main([*command, "--out", str(folder / name)]) == 0
    return folder


def test_the_files_repeat_and_hold_what_was_learnt(cliff):
    names = sorted(p.name for p in (cliff / "one").iterdir())
    assert names == ["agent.epi", "report.html", "report.json"]
    for name in ("report.html", "report.json"):
        assert (cliff / "one" / name).read_bytes() == (cliff / "two" / name).read_bytes(), name
    agent = ep.load(cliff / "one" / "agent.epi")
    assert type(agent).__name__ == "QLearning"
    assert agent.learning_rate == 0.5
    assert agent.discount == 1  # that of the process
    found = json.loads((cliff / "one" / "report.json").read_text())["agent"]
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    assert found["runs"][0]["mean"] == found["episode"]["return"] == -13  # the short path
    assert found["episode"]["length"] == 13
    assert found["random"]["high"] < -1000
    assert found["certificate"]["holds"]


def test_the_record_compares_with_the_best_values(cliff):
    rows = json.loads((cliff / "one" / "report.json").read_text())["agent"]["world"]["policy"]
    best = policy_iteration(worlds.cliff_walk()).values
    np.testing.assert_allclose([row["best"] for row in rows], best)
    agent = ep.load(cliff / "one" / "agent.epi")
    for row, value, visits in zip(rows, agent.values_, agent.visits_.sum(axis=1), strict=True):
        assert row["visits"] == visits
        assert row["value"] == (None if row["terminal"] or not visits else value)


def test_the_page_shows_curve_evaluation_episode_and_policy(cliff):
    page = (cliff / "one" / "report.html").read_text()
    assert "far from all that is drawn" in page
    for name in ("learning", "path", "grid"):
        assert f'data-figure="{name}"' in page
    assert "<strong>QLearning</strong> earns -13" in page
    assert "more than random actions" in page
    assert page.count("<animate ") == 2
    assert "interval of the mean over 2 seeds" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_it_prints_returns_and_chance(tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    assert main(["play", "cart-pole", "--steps", "3000", "--seeds", "1", "--episodes", "5", *out]) == 0
    printed = capsys.readouterr().out
    learnt, chance = (float(re.search(words, printed)[1]) for words in (r"seed 0: return (\S+),", r"actions: (\S+),"))
    assert learnt > 1.5 * chance
    assert "no proof of optimality" in printed
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'data-figure="states"' in page
    assert 'data-figure="grid"' not in page
    assert type(ep.load(tmp_path / "out" / "agent.epi")).__name__ == "CrossEntropyMethod"


def test_a_file_of_a_decision_process_is_an_environment(tmp_path, capsys):
    (tmp_path / "grid.txt").write_text("step_reward: -0.02\nslip: 0.2\n\n...+\n.#.-\n....\n")
    command = [
        "play",
        str(tmp_path / "grid.txt"),
        "--agent",
        "dyna-q",
        *SHORT,
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"][0]["low"] > found["random"]["high"]
    assert found["certificate"]["kind"] == "loss of the greedy policy"


gymnasium = pytest.importorskip("gymnasium")


class Corridor(gymnasium.Env):
    """Five cells; to the right the end and a reward. It draws itself."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, render_mode=None, picture=True):
        self.render_mode, self.picture = render_mode, picture
        self.observation_space, self.action_space = gymnasium.spaces.Discrete(5), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at = min(max(self.at + (1 if action else -1), 0), 4)
        return self.at, -1.0, self.at == 4, False, {}

    def render(self):
        if not self.picture:
            raise ImportError("no library to draw with")
        frame = np.zeros((60, 300, 3), dtype=np.uint8)
        frame[:, 60 * self.at : 60 * (self.at + 1)] = 255
        return frame


@pytest.fixture
def corridor():
    names = {"EpicycleCorridor-v0": {}, "EpicycleBlindCorridor-v0": {"picture": False}}
    for name, settings in names.items():
        gymnasium.register(name, entry_point=Corridor, max_episode_steps=50, kwargs=settings)
    yield
    for name in names:
        del gymnasium.registry[name]


@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's checks of environments
def test_pictures_of_the_environment_become_an_animation(corridor, tmp_path, capsys):
    from PIL import Image

    assert main(["play", "EpicycleCorridor-v0", *SHORT, "--out", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "report.json").read_text())["agent"]["episode"]
    assert found["return"] == -4
    gif = base64.b64decode(found["image"].removeprefix("data:image/gif;base64,"))
    with Image.open(io.BytesIO(gif)) as image:
        assert image.size == (240, 48)
        assert image.n_frames == found["frames"] == 5
        image.seek(4)
        last = np.asarray(image.convert("L"))
    assert last[:, 200:].min() > 200 > 50 > last[:, :180].max()  # at the right end
    assert 'data-figure="animation"' in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_pictures_it_says_why(corridor, tmp_path, capsys):
    assert main(["play", "EpicycleBlindCorridor-v0", *SHORT, "--out", str(tmp_path / "out")]) == 0
    assert "drew no pictures (ImportError: no library to draw with)" in capsys.readouterr().out
    assert 'data-figure="states"' in (tmp_path / "out" / "report.html").read_text()  # the rewards


def test_grids_of_gymnasium_are_drawn_as_grids(tmp_path):
    settings = ["--set", "learning_rate=0.5", "--set", "discount=1.0", *SHORT, "--max-steps", "300"]
    assert main(["play", "CliffWalking-v1", *settings, "--out", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "report.json").read_text())["agent"]
    policy = found["world"]["policy"]
    assert found["random"]["truncated"] > 10
    assert [policy[s]["action"] for s in (36, 24, 35)] == ["N", "E", "S"]  # up, along the edge, down
    assert found["world"]["cells"][36] == [3, 0]
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'data-figure="grid"' in page
    assert 'data-figure="path"' in page


def test_slippery_ice_has_arrows_too(tmp_path):
    assert main(["play", "FrozenLake-v1", *SHORT, "--out", str(tmp_path / "out")]) == 0
    policy = json.loads((tmp_path / "out" / "report.json").read_text())["agent"]["world"]["policy"]
    agent = ep.load(tmp_path / "out" / "agent.epi")
    for s, row in enumerate(policy):
        if row["action"] is not None:
            assert row["action"] == "WSEN"[agent.act(s)]  # as Gymnasium numbers them


def test_long_animations_are_thinned():
    from PIL import Image

    from epicycle.rl._video import animation

    rng = np.random.default_rng(0)
    noise = [rng.integers(256, size=(100, 150, 3), dtype=np.uint8) for _ in range(24)]  # cannot be compressed
    made = animation(noise, 50.0, largest=100_000)
    assert len(made) <= 100_000
    with Image.open(io.BytesIO(made)) as image:
        assert 4 <= image.n_frames < 24
        assert image.info["duration"] > 50


@pytest.mark.filterwarnings("default")
def test_an_interrupt_keeps_what_was_learnt(tmp_path, monkeypatch, capsys):
    from epicycle.rl import QLearning

    advance, calls = QLearning._advance, []

    def interrupted(self, world, most):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return advance(self, world, 500)

    monkeypatch.setattr(QLearning, "_advance", interrupted)
    assert main(["play", "grid", *SHORT, "--out", str(tmp_path / "out")]) == 0
    assert "interrupted after 500 of 8,000 steps" in capsys.readouterr().err
    found = json.loads((tmp_path / "out" / "report.json").read_text())["agent"]
    assert found["interrupted"]
    assert len(found["runs"]) == 1
    assert found["runs"][0]["steps"] < 8000
    assert "Learning was interrupted" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clif-walk"], "ENV clif-walk: not found (did you mean cliff-walk"),
        (["CartPole-v77"], "CartPole-v1"),
        (["grid", "--agent", "qlerning"], "did you mean QLearning"),
        (["grid", "--set", "learningrate=1"], "did you mean learning_rate?"),
        (["grid", "--set", "learning_rate=7"], "learning_rate=7"),
        (["cart-pole", "--agent", "sarsa"], "expected a discrete space"),
        (["grid", "--engine", "mcts"], "--engine: grid is not a game"),
        (["connect-four", "--agent", "sarsa"], "--agent: connect-four is a game"),
        (["grid", "--steps", "0"], "steps"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_written(arguments, words, tmp_path, capsys):
    out = [] if "connect-four" in arguments else ["--out", str(tmp_path / "out")]
    assert main(["play", *arguments, *out]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_agent_of_nonsense_is_a_page():
    nonsense = {
        "runs": [None, 3],
        "random": 7,
        "curve": {"steps": [1, 2], "mean": ["x", None]},
        "episode": {
            "image": "data:image/gif;base64,<script>",
            "path": [9, -1, "a"],
            "states": [None, [1]],
            "rewards": 4,
        },
        "world": {"policy": [None, {"value": 1}], "cells": [["a"], [1e9, 2]]},
        "certificate": 3,
    }
    page = report.html({"agent": nonsense})
    assert page.startswith("<!DOCTYPE html>")
    assert "data:image/gif" not in page
    bad = {"agent": {"name": "<script>alert(1)</script>", "runs": [], "episode": {"note": "<script>alert(2)"}}}
    assert "<script>alert" not in report.html(bad)
