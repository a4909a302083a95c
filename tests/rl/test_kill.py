"""Processes that are killed while agents learn: what is in the file goes on to the bits of a run without a stop."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

import epicycle as ep
from tests.rl.killed_run import AGENTS, STEPS, environment, learner

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]


def killed(name, file):
    """Start a run, and kill it some time after its first checkpoint."""
    process = subprocess.Popen([sys.executable, "-m", "tests.rl.killed_run", name, str(file)], cwd=ROOT)
    try:
        for _ in range(3000):
            if file.exists():
                break
            assert process.poll() is None, "the run ended before it wrote a file"
            time.sleep(0.02)
        time.sleep(0.3)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    return ep.load(file)


def leaves(state, name=""):
    """Arrays, numbers and words of nested dictionaries and lists by their places."""
    if isinstance(state, dict | list | tuple):
        pairs = state.items() if isinstance(state, dict) else enumerate(state)
        return {place: leaf for key, part in pairs for place, leaf in leaves(part, f"{name}/{key}").items()}
    return {name: state}


def same(one, other):
    a, b = leaves(one), leaves(other)
    assert a.keys() == b.keys()
    for place in a:
        assert_array_equal(a[place], b[place], err_msg=place)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_a_killed_process_goes_on_to_the_same_bits(name, tmp_path):
    back = killed(name, tmp_path / "run.epi")
    assert 0 < back._progress["made"] < STEPS
    whole = AGENTS[name]().learn(environment(name), STEPS)
    back.resume(environment(name))
    same(back._learnt(), whole._learnt())
    assert back.history_ == whole.history_


@pytest.mark.slow
def test_a_killed_learner_of_a_game_goes_on_to_the_same_bits(tmp_path):
    back = killed("AlphaZero", tmp_path / "run.epi")
    n = back.n_iter_
    assert n > 0
    same(back.learn(2).__epi_state__()["candidate"], learner().learn(n + 2).__epi_state__()["candidate"])
