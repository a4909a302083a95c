"""The search ends in time and finds the best candidate, by a clock that tells the time that fits are said to take."""

import numpy as np
import pytest

from epicycle.automl._budget import Budget, Durations
from epicycle.automl._candidates import Axis, Candidate, Family, families_for
from epicycle.automl._evaluation import Facts, FoldScore
from epicycle.automl._search import Search, final_candidate


class Stage:
    """An evaluation whose fits are pretended: their scores and times follow from settings and rows."""

    def __init__(self, n, seconds_per_row, k=5):
        self.splits = [(np.arange(n * (k - 1) // k), np.arange(n // k)) for _ in range(k)]
        self.more_splits, self.seed = [], 0
        self.facts = Facts("regression", n, 5)
        self.now, self.rate, self.log = 0.0, seconds_per_row, []

    def largest(self):
        return len(self.splits[0][0])

    def run(self, candidate, rows, folds, limit, *, partial=False):
        found = []
        for fold in folds:
            seconds = candidate.settings["cost"] * self.rate * rows**candidate.family.grows
            self.now += seconds
            quality = candidate.settings["quality"] * (1 - 10 / (10 + rows)) + 0.001 * fold
            found.append(FoldScore(fold, quality, seconds, rounds=7))
            self.log.append((candidate.settings["quality"], rows, fold))
        return found


def family(starts, **more):
    return Family("Toy", "regression", dict, "trees", starts, {"quality": Axis(0.0, 1.0)}, **more)


@pytest.mark.parametrize("rows", [300, 20_000, 1_000_000])
@pytest.mark.parametrize("budget", [2.0, 20.0])
def test_search_ends_in_time_with_the_best(rows, budget):
    rate = 2e-6 if rows < 10**6 else 2e-8
    stage = Stage(rows, rate)
    starts = tuple({"quality": q, "cost": c} for q, c in ((0.3, 1.0), (0.9, 3.0), (0.5, 0.5), (0.2, 10.0), (0.6, 1.0)))
    clock = Budget(budget, clock=lambda: stage.now)
    led = []
    search = Search(
        stage, [family(starts)], clock, lambda e, leads: led.append(leads), lambda refit: refit + 0.1 * budget
    )
    winner = search.run()
    at = winner.most_rows()
    refit = winner.candidate.settings["cost"] * rate * rows
    assert stage.now + refit <= budget
    assert led[0]
    if at == stage.largest():
        assert winner.candidate.settings["quality"] >= 0.9
    assert final_candidate(winner, stage.largest()).settings["n_estimators"] == 7
    assert winner.status == "chosen"


def test_halving_gives_more_rows_to_the_better_half():
    stage = Stage(100_000, 1e-8)
    starts = tuple({"quality": q, "cost": 1.0} for q in np.linspace(0.1, 0.8, 10))
    search = Search(
        stage, [family(starts)], Budget(40.0, clock=lambda: stage.now), lambda *a: None, lambda refit: refit
    )
    search.run()
    rungs = [rows for rows, _ in search.rungs]
    assert len(rungs) >= 3
    tried = [len({q for q, n, _ in stage.log if n == rows and q in np.linspace(0.1, 0.8, 10)}) for rows in rungs]
    assert tried[:3] == [10, 5, 4]
    assert {q for q, n, _ in stage.log if n == rungs[-2]} >= {0.8}


def test_what_cannot_end_in_time_is_not_begun():
    stage = Stage(1_000_000, 1e-6)
    slow = family(({"quality": 0.9, "cost": 1e-3},), grows=2.0)
    quick = family(({"quality": 0.5, "cost": 0.1},))
    search = Search(
        stage, [quick, slow], Budget(30.0, clock=lambda: stage.now), lambda *a: None, lambda refit: refit + 1
    )
    winner = search.run()
    assert winner.candidate.settings["cost"] == 0.1
    assert stage.now < 30
    assert "out of time" in next(e.status for e in search.entries if e.candidate.family is slow)


def test_durations_grow_with_rows():
    known = Durations(1.0)
    assert known.expected(100) is None
    known.add(1000, 0.1)
    assert known.expected(10_000) == pytest.approx(1.0)
    known.add(4000, 0.5)
    assert known.expected(8000) >= 1.0


def test_axes_stay_in_their_range():
    rng = np.random.default_rng(0)
    axis = Axis(1e-3, 1e3, log=True)
    values = [axis.draw(rng) for _ in range(200)] + [axis.near(500.0, rng, 0.5) for _ in range(200)]
    assert 1e-3 <= min(values) < 1e-2 < 1e2 < max(values) <= 1e3
    whole = Axis(1, 64, log=True, whole=True)
    assert all(isinstance(whole.near(8, rng, 0.3), int) for _ in range(20))
    assert {Axis(choices=("a", "b")).draw(rng) for _ in range(30)} == {"a", "b"}


def test_candidates_follow_size_kind_and_weights():
    def names(**facts):
        return {f.name for f in families_for(Facts(**{"task": "regression", "n": 500, "p": 4, **facts}), None)}

    assert {"RidgeCV", "KernelRidge", "KNeighbors", "GradientBoosting"} <= names()
    assert "PoissonRegression" not in names()
    assert "PoissonRegression" in names(counts=True)
    assert not {"KernelRidge", "KNeighbors"} & names(n=10**6)
    assert "KNeighbors" not in names(weighted=True)
    assert "LogisticRegression" in names(task="classification")
    for family in families_for(Facts("classification", 100, 3), None):
        for start in family.starts:
            assert Candidate(family, start).build(0).get_params()
