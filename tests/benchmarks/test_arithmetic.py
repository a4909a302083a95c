"""Medians, spreads, and who is compared with whom."""

import math

import pytest

from benchmarks.arithmetic import best_peer, count_quality, ratio, speedup, speedup_over_best_peer
from benchmarks.task import Outcome, Target


def outcome(name, role, seconds, error, tolerance=1e-6, failure=""):
    result = Outcome(name, role, seconds=seconds, failure=failure)
    count_quality(result, {"error": error, "other": 99.0}, tolerance)
    return result


@pytest.fixture
def outcomes():
    found = [
        outcome("sloppy", "peer", [0.01] * 3, 1e-3),
        outcome("broken", "peer", [], 0.0, failure="timed out after 1 s"),
        outcome("b", "peer", [3.0, 5.0, 4.0], 1e-7),
        outcome("a", "peer", [8.0, 8.0, 1.0], 1e-7),
        outcome("baseline", "baseline", [0.1] * 3, 0.0),
        outcome("ours", "epicycle", [1.0, 2.0, 90.0], 1e-7),
    ]
    return {o.name: o for o in found}


def test_median_and_quartiles():
    result = Outcome("a", "peer", seconds=[5.0, 1.0, 3.0, 2.0, 100.0])
    assert result.median == 3.0
    assert result.spread == 3.0  # 5 - 2
    assert math.isnan(Outcome("a", "peer").median)


def test_a_failure_after_some_rounds_leaves_no_median():
    result = Outcome("a", "peer", seconds=[1.0, 1.0], failure="timed out after 1 s")
    assert math.isnan(result.median)
    assert math.isnan(result.spread)


def test_best_peer_is_the_fastest_at_equal_quality(outcomes):
    assert best_peer(outcomes.values()).name == "b"  # neither the sloppy one nor the baseline
    assert speedup(outcomes["ours"], outcomes["b"]) == 2.0
    assert speedup_over_best_peer("ours")(outcomes) == 2.0
    assert speedup_over_best_peer("ours", among="a")(outcomes) == 4.0
    assert ratio("a", "b")(outcomes) == 2.0


def test_no_ratio_without_equal_quality_on_both_sides(outcomes):
    count_quality(outcomes["ours"], {"error": 1.0}, 1e-6)
    assert math.isnan(speedup_over_best_peer("ours")(outcomes))
    assert best_peer([outcomes["sloppy"], outcomes["broken"]]) is None
    assert math.isnan(speedup(outcomes["b"], None))


@pytest.mark.parametrize("quality", [{}, {"error": math.nan}, {"error": 1.0 + 1e-9}])
def test_quality_that_was_not_measured_or_missed_does_not_count(quality):
    result = Outcome("a", "peer", seconds=[1.0])
    count_quality(result, quality, 1.0)
    assert not result.at_equal_quality


def test_a_task_without_quality_counts_everybody():
    result = Outcome("a", "peer", seconds=[1.0])
    count_quality(result, None, math.inf)
    assert result.at_equal_quality


def test_targets():
    assert Target("t", lambda o: 0, at_least=2.0).met(2.0)
    assert not Target("t", lambda o: 0, at_least=2.0).met(1.99)
    assert Target("t", lambda o: 0, at_most=0.0).met(0.0)
    assert not Target("t", lambda o: 0, at_most=1.5).met(1.51)
    assert not Target("t", lambda o: 0, at_most=1.5).met(math.nan)
    assert not Target("t", lambda o: 0, at_least=1.5).met(math.nan)
    with pytest.raises(ValueError, match="at_least or at_most"):
        Target("t", lambda o: 0)
