"""The search ends in time and finds the best candidate, by a clock that tells the time that fits are said to take."""

import math

import numpy as np
import pytest

from epicycle.automl._budget import Budget, Durations
from epicycle.automl._candidates import Axis, Candidate, Family, families_for
from epicycle.automl._evaluation import Facts, FoldScore
from epicycle.automl._leaderboard import cost_of_restriction, final_candidate, leaderboard
from epicycle.automl._metrics import metric_for
from epicycle.automl._search import Search
from epicycle.automl._search_state import SearchState
from epicycle.exceptions import DataFileError, ParameterError


class Stage:
    """An evaluation whose fits are pretended: their scores and times follow from settings and rows."""

    def __init__(self, n, seconds_per_row, k=5):
        self.splits = [(np.arange(n * (k - 1) // k), np.arange(n // k)) for _ in range(k)]
        self.more_splits, self.seed = [], 0
        self.facts = Facts("regression", n, 5)
        self.now, self.rate, self.log = 0.0, seconds_per_row, []
        self.interrupt_at = 0
        self.metric = metric_for("r2", "regression", np.empty(0))

    def largest(self):
        return len(self.splits[0][0])

    def run(self, candidate, rows, folds, limit, *, partial=False):
        found = []
        for fold in folds:
            seconds = candidate.settings["cost"] * self.rate * rows**candidate.family.grows
            self.now += seconds
            quality = candidate.settings["quality"] * (1 - 10 / (10 + rows)) + 0.001 * fold
            if fold < 2:
                quality += candidate.settings.get("luck", 0.0)
            failure = "stopped" if rows > candidate.settings.get("most", math.inf) else ""
            found.append(FoldScore(fold, quality, seconds, rounds=7, failure=failure))
            self.log.append((candidate.settings["quality"], rows, fold))
            if len(self.log) == self.interrupt_at:
                raise KeyboardInterrupt
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


def search_of(stage, families, budget=40.0, **more):
    clock = Budget(budget, clock=lambda: stage.now)
    return Search(stage, families, clock, more.pop("on_evaluated", lambda *a: None), lambda refit: refit, **more)


@pytest.mark.parametrize("rows", [300, 100_000])
def test_a_leader_is_replaced_only_on_all_of_its_folds(rows):
    """A candidate that is lucky on the two folds of a rung must not lead before it has seen the others."""
    stage = Stage(rows, 1e-9)
    starts = (
        {"quality": 0.5, "cost": 1.0},
        {"quality": 0.4, "cost": 1.0, "luck": 0.15},
        {"quality": 0.3, "cost": 1.0, "luck": 0.3},
        {"quality": 0.6, "cost": 1.0},
    )
    seen = []

    def note(entry, leads):
        at = entry.most_rows()
        if leads:
            if seen:
                before, n, folds = seen[-1]
                assert at >= n
                assert at > n or set(entry.folds(at)) >= set(folds)
                if entry is not before and at == n:
                    assert entry.mean(at, folds) > before.mean(at, folds)
            seen.append((entry, at, entry.folds(at)))

    winner = search_of(stage, [family(starts)], on_evaluated=note).run()
    assert winner.candidate.settings["quality"] >= 0.6
    # Without a search space nothing else can win.
    fixed = Family("Toy", "regression", dict, "trees", starts[:3])
    assert search_of(Stage(rows, 1e-9), [fixed]).run().candidate.settings["quality"] == 0.5


def test_a_leader_that_fails_on_more_rows_gives_way():
    stage = Stage(100_000, 1e-9)
    starts = (
        {"quality": 0.3, "cost": 1.0},
        {"quality": 0.9, "cost": 1.0, "most": 5_000},
        {"quality": 0.7, "cost": 1.0},
    )
    search = search_of(stage, [Family("Toy", "regression", dict, "trees", starts)])
    winner = search.run()
    assert winner.candidate.settings["quality"] == 0.7
    assert winner.most_rows() == stage.largest()
    assert search.entries[1].status == "stopped"
    board = leaderboard(search.entries, winner, winner.candidate, stage.metric)
    assert [row["params"]["quality"] for row in board] == [0.7, 0.3, 0.9]  # by rows first, then by score


def test_an_interrupt_ends_the_search_with_the_leader():
    stage = Stage(300, 1e-9)
    stage.interrupt_at = 12
    starts = tuple({"quality": q, "cost": 1.0} for q in (0.3, 0.9, 0.5))
    search = search_of(stage, [family(starts)])
    winner = search.run()
    assert search.interrupted
    assert winner.candidate.settings["quality"] == 0.9
    assert len(stage.log) == 12
    stage = Stage(300, 1e-9)
    stage.interrupt_at = 1  # nothing to end with
    with pytest.raises(KeyboardInterrupt):
        search_of(stage, [family(starts)]).run()


@pytest.mark.parametrize("stop", [7, 23, 60])
def test_a_resumed_search_is_that_which_was_never_interrupted(tmp_path, stop):
    starts = tuple({"quality": q, "cost": 1.0 + q} for q in np.linspace(0.1, 0.8, 6))
    settings = {"table": "a", "metric": "r2"}

    def searched(folder, interrupt_at=0):
        stage = Stage(3_000, 1e-5)
        stage.interrupt_at = interrupt_at
        state = SearchState(folder)
        state.open(settings, 4.0)
        search = search_of(stage, [family(starts)], budget=4.0, state=state)
        winner = search.run()
        return stage, winner, leaderboard(search.entries, winner, winner.candidate, stage.metric)

    undisturbed = searched(tmp_path / "whole")
    first = searched(tmp_path / "part", stop)
    with (tmp_path / "part" / "search.jsonl").open("a") as file:
        file.write('{"name": "cut off by a cra')
    second = searched(tmp_path / "part")
    assert len(undisturbed[0].log) > stop + 5
    # What is done again is the candidate that was interrupted, at most on all folds.
    assert len(first[0].log) + len(second[0].log) <= len(undisturbed[0].log) + 5
    assert second[2] == undisturbed[2]
    whole, part = ((tmp_path / name / "search.jsonl").read_text() for name in ("whole", "part"))
    assert part.splitlines()[1:] == whole.splitlines()[1:]


def test_a_search_goes_on_with_its_own_rows_and_settings_only(tmp_path):
    SearchState(tmp_path).open({"table": "a", "metric": "r2"}, 4.0)
    with pytest.raises(ParameterError, match=r"whose metric was 'r2'; here it is 'mae'"):
        SearchState(tmp_path).open({"table": "a", "metric": "mae"}, 4.0)
    (tmp_path / "search.jsonl").write_text("no JSON\n")
    with pytest.raises(DataFileError, match="no state of a search"):
        SearchState(tmp_path).open({}, 4.0)
    fresh = SearchState(tmp_path / "new")
    fresh.open({}, 1.0)
    fresh.discard()
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_chosen_is_compared_and_its_gain_is_told():
    stage = Stage(300, 1e-9)
    starts = tuple({"quality": q, "cost": 1.0} for q in (0.9, 0.5, 0.3, 0.8, 0.7, 0.6))
    toys = Family("Toy", "regression", dict, "trees", starts)

    def may_lead(candidate):
        return candidate.settings["quality"] < 0.55

    search = search_of(stage, [toys], may_lead=may_lead)
    winner = search.run()
    assert winner.candidate.settings["quality"] == 0.5
    cost = cost_of_restriction(search.entries, winner, may_lead, stage.metric)
    assert cost["name"] == "Toy(quality=0.9, cost=1.0)"
    assert cost["n_folds"] == 5
    rows = stage.largest()
    assert cost["cost"] == pytest.approx(0.4 * (1 - 10 / (10 + rows)))
    assert cost["cost_se"] == pytest.approx(0.0, abs=1e-12)
    assert cost["score"] - cost["score_chosen"] == pytest.approx(cost["cost"])
