"""Faults that were put into the data are found, and data without them raise no alarm."""

import numpy as np
import pyarrow as pa
import pytest

import epicycle as ep
from epicycle.automl._data_checks import drift_between, duplicates, leaking_columns

TREE = {"time": 1.5, "models": "decisiontree"}


def plain(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    return rng, X, y


def as_table(X, y, **more):
    return pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, **more, "y": y})


def kinds(run):
    return {warning.kind for warning in run.warnings}


def test_sound_data_raise_no_alarm():
    _, X, y = plain()
    run = ep.train(as_table(X, y), **TREE)
    assert kinds(run) == set()


def test_leakage():
    rng, X, y = plain()
    run = ep.train(as_table(X, y, receipt=2 * y + 1e-3 * rng.normal(size=len(y))), **TREE)
    (found,) = [w for w in run.warnings if w.kind == "leakage"]
    assert found.columns == ("receipt",)
    assert found.severity == "high"
    assert "suspected leakage" in next(p.warnings for p in run.profile if p.name == "receipt")
    without = ep.train(as_table(X, y, receipt=y), drop=["receipt"], **TREE)
    assert kinds(without) == set()
    assert "receipt" not in without.model_.encoder_.columns_
    _, X, y = plain(4000)
    label = np.where(y > 0, "up", "down")
    power, warned = leaking_columns(np.column_stack([X, y > 0]), [*"abcd", "e"], [4], label, "classification", 0)
    assert [w.columns for w in warned] == [("e",)]
    assert power["c"] < 0.02 < power["a"] < 0.5


def test_duplicates_across_the_split():
    rng, X, y = plain(300)
    label = np.where(y > 0, "up", "down")
    again = np.concatenate([np.arange(300), rng.integers(0, 300, 200)])
    run = ep.train(as_table(X[again], label[again]), **TREE)
    (found,) = [w for w in run.warnings if w.kind == "duplicates across the split"]
    assert found.severity == "high"
    assert "duplicate rows" in kinds(run)
    assert run.without_duplicates is not None
    assert run.without_duplicates.n < run.test.n
    counted, _ = duplicates(X[:200], y[:200], X[150:], y[150:])
    assert counted.across.tolist() == [True] * 50 + [False] * 100
    assert counted.within == 0
    other, _ = duplicates(X[:200], y[:200], X[150:], y[150:] + 1)  # another target is another row
    assert not other.across.any()


def test_drift():
    rng, X, y = plain(1000)
    later = X[500:] + np.array([0, 0.8, 0, 0])
    levels = np.concatenate([rng.choice(3, 500), rng.choice(3, 500, p=[0.7, 0.2, 0.1])]).astype(float)
    first, second = np.column_stack([X[:500], levels[:500]]), np.column_stack([later, levels[500:]])
    found, warned = drift_between(first, second, [*"abcd", "level"], [4], 0)
    assert set(warned[0].columns) == {"b", "level"}
    assert found[0].distance > 0.2
    run = ep.train(as_table(X[:500], y[:500]), test=as_table(later, y[500:]), **TREE)
    assert [w.columns for w in run.warnings if w.kind == "drift"] == [("x1",)]


def test_drift_is_seldom_found_where_there_is_none():
    rng = np.random.default_rng(3)
    alarms = 0
    for seed in range(200):
        a, b = rng.normal(size=(60, 5)), rng.normal(size=(40, 5))
        a[:, 4], b[:, 4] = rng.integers(0, 3, 60), rng.integers(0, 3, 40)
        alarms += bool(drift_between(a, b, list("abcde"), [4], seed)[1])
    assert alarms <= 8  # one in a hundred is promised: P(more than 8 of 200) < 0.1%


@pytest.mark.parametrize("backwards", [False, True])
def test_rows_in_order_of_time(backwards):
    _, X, y = plain(200)
    days = np.datetime64("2022-01-01") + np.arange(200).astype("timedelta64[D]")
    rows = slice(None, None, -1) if backwards else slice(None)
    table = as_table(X[rows], y[rows], day=pa.array(days[rows].astype("datetime64[s]")))
    parts = ep.training.read_parts(table)
    assert parts.how == "in order of time"
    assert parts.train["day"].to_numpy().max() < parts.test["day"].to_numpy().min()
    assert ep.training.read_parts(table, order=None).how == "at random"
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(200)))
    assert ep.training.read_parts(shuffled).how == "at random"
    asked = ep.training.read_parts(shuffled, order="day")
    assert asked.train["day"].to_numpy().max() < asked.test["day"].to_numpy().min()
    if not backwards:
        run = ep.train(table, **TREE)
        assert run.how == "in order of time"
        assert run.model_.encoder_.columns_["day"] == "date"


def test_groups_stay_together():
    rng, X, y = plain(300)
    who = rng.integers(0, 30, 300)
    run = ep.train(as_table(X, y, who=[f"person {w}" for w in who]), groups="who", **TREE)
    held = set(who[run.test_part.rows])
    assert held.isdisjoint(set(np.delete(who, run.test_part.rows)))
    assert run.how == "by groups"
    assert "who" not in run.model_.encoder_.columns_


def test_columns_that_say_nothing_are_left_out_with_a_reason():
    rng, X, y = plain(200)
    text = [f"the quick brown fox {i} jumps over" for i in rng.permutation(200)]
    table = as_table(
        X, y, row_id=np.arange(200), ticket=[f"T{i:05d}" for i in rng.permutation(10**5)[:200]], story=text,
        nothing=pa.nulls(200), same=np.ones(200), odd=["3.5"] * 198 + ["unknown", "1"],
    )  # fmt: skip
    run = ep.train(table, **TREE)
    profile = {p.name: p for p in run.profile}
    dropped = {name for name, p in profile.items() if p.kind == "drop"}
    assert dropped == {"row_id", "ticket", "story", "nothing", "same"}
    assert profile["odd"].kind == "number"
    assert {"identifier", "text", "missing", "constant", "mixed types"} <= kinds(run)
    assert all(profile[name].treatment.startswith("left out") for name in dropped)


def test_rows_without_a_target_are_left_out_and_said():
    _, X, y = plain(100)
    run = ep.train(as_table(X, pa.array(y, mask=np.arange(100) % 10 == 0)), **TREE)
    assert "missing target" in kinds(run)
    assert sum(run.sizes.values()) == 90
    assert not (run.test_part.rows % 10 == 0).any()


def test_folds_of_one_class_are_not_used():
    from epicycle.automl._parts import folds

    y = np.array(["a"] * 60 + ["b"] * 40)
    kept = folds(y, task="classification", groups=None, ordered=True, seed=0)
    assert kept
    assert all(len(set(y[a])) == len(set(y[b])) == 2 for a, b in kept)
