"""The runner on tasks that are over at once: processes, caps, crashes, memory, tolerances, turns."""

import os
from pathlib import Path

import fake_benchmarks as fake
import pytest

from benchmarks.arithmetic import best_peer, speedup
from benchmarks.runner import run_task


def test_ratio_is_to_the_best_peer_at_equal_quality():
    outcomes = run_task(fake.RACE, repeats=2)
    assert [len(o.seconds) for o in outcomes.values()] == [2, 2, 2, 2]
    assert not outcomes["sloppy"].at_equal_quality
    best = best_peer(outcomes.values())
    assert best.name == "fast"
    assert speedup(outcomes["ours"], best) == pytest.approx(2.0)


def test_every_ending_is_told_apart_and_the_others_go_on():
    outcomes = run_task(fake.ENDINGS, repeats=1)
    assert outcomes["hangs"].failure == "timed out after 1 s"
    assert outcomes["segfaults"].failure.startswith("crashed (SIGSEGV)")
    assert outcomes["leaves"].failure == "crashed (exit status 3): out of order"
    assert outcomes["refuses"].failure == "failed: ValueError: not with"  # one line, no path
    assert outcomes["needs"].failure == "not installed: a_module_that_nobody_has"
    assert outcomes["chatters"].failure == ""
    assert outcomes["chatters"].quality["sum"] == 6.0  # 0 + 1 + 2 + 3: the arrays came across, the chatter did not
    assert not is_running(int(outcomes["chatters"].quality["worker"]))  # the worker of the one that hung


def is_running(pid):
    status = Path(f"/proc/{pid}/status")
    if status.parent.parent.exists():
        return status.exists() and "State:\tZ" not in status.read_text()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_peak_memory_is_per_call_and_sees_200_megabytes():
    outcomes = run_task(fake.MEMORY, repeats=2)
    assert all(195e6 < bytes_ < 230e6 for bytes_ in outcomes["large"].memory)
    assert all(bytes_ < 20e6 for bytes_ in outcomes["small"].memory)
    assert all(o.peak_rss[0] > o.memory[0] for o in outcomes.values())


def test_the_loosest_tolerance_that_reaches_the_quality_is_timed():
    outcomes = run_task(fake.TOLERANCES, repeats=1)
    assert outcomes["stops"].tol == 1e-3
    assert outcomes["stops"].at_equal_quality
    assert outcomes["never there"].tol == 1e-2  # its best
    assert not outcomes["never there"].at_equal_quality
    # three and two to find the tolerance, one each to warm up, one each timed: 1e-4 was never tried
    assert outcomes["stops"].quality["calls"] == 3 + 2 + 2 + 2
    assert outcomes["reference"].seconds == []


def test_turns_rotate_and_processes_persist():
    fake.SEEN.clear()
    run_task(fake.TURNS, repeats=2, threads=2)
    ((log, solutions),) = fake.SEEN
    calls = [entry.split(":") for entry in log]
    assert "".join(name for name, _ in calls if name != "closed") == "abcbcacab"
    pids = {name: [pid for n, pid in calls if n == name] for name in "abc"}
    assert [len(set(pids[name])) for name in "abc"] == [1, 1, 3]  # c asked for a fresh process every time
    assert [name for name, _ in calls].count("closed") == 1
    assert [int(solutions[name]["threads"]) for name in "abc"] == [1, 2, 2]
    assert int(solutions["a"]["cores"]) == 1
