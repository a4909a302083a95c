"""Faults that were put into the data are found, and data without them raise no alarm."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import epicycle as ep
from epicycle.automl._metrics import metric_for
from epicycle.automl.checks._data_checks import DataIssue, leaking_columns
from epicycle.automl.checks._part_checks import drift_between, duplicates, with_effect

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
    assert (
        f"{run.metric.label} {run.test.score:.4g} with them, {run.without_duplicates.score:.4g} without" in found.text
    )


@pytest.mark.parametrize(
    ("metric", "score", "without", "effect"),
    [
        ("accuracy", 0.9, 0.8, "makes the score look better"),
        ("accuracy", 0.8, 0.9, "makes the score look worse"),
        ("log_loss", 0.3, 0.5, "makes the score look better"),
        ("log_loss", 0.5, 0.3, "makes the score look worse"),
        ("log_loss", 0.50000001, 0.5, "does not change the score"),
    ],
)
def test_the_effect_of_duplicates_has_the_right_sign(metric, score, without, effect):
    issue = DataIssue("duplicates across the split", "high", "3 of 9 test rows are equal to a training row: and more")
    found = with_effect(issue, metric_for(metric, "classification", np.array(["a", "b"])), score, without)
    assert found.text.startswith(f"3 of 9 test rows are equal to a training row, which {effect}: ")


def test_duplicates_are_compared_as_they_came():
    """Levels that an encoder counts as missing, and texts, tell rows apart."""
    rng, X, y = plain(300)
    y = np.where(y > 0, "up", "down")
    ticket = [f"T{i % 40}" for i in range(300)]
    first, second = (
        pa.table({"x": X[rows, 0], "ticket": [ticket[i] for i in rows]}) for rows in (range(200), range(150, 300))
    )
    counted, _ = duplicates(first, y[:200], second, y[150:], ["x", "ticket"])
    assert counted.across.tolist() == [True] * 50 + [False] * 100
    assert counted.within == 0
    other, _ = duplicates(first, y[:200], second, np.where(y[150:] == "up", "down", "up"), ["x", "ticket"])
    assert not other.across.any()  # another target is another row
    renamed = second.set_column(1, "ticket", pa.array([f"{t}/1" for t in second["ticket"].to_pylist()]))
    other, _ = duplicates(first, y[:200], renamed, y[150:], ["x", "ticket"])
    assert not other.across.any()
    table = pa.table(
        {
            "age": rng.integers(20, 24, 400),
            "ticket": [f"T{i}" for i in rng.permutation(np.arange(400) % 330)],
            "name": [f"person number {i} of the list" for i in range(400)],
            "y": rng.choice(["yes", "no"], 400),
        }
    )
    run = ep.train(table, **TREE)
    assert {p.name: p.treatment for p in run.profile}["name"].startswith("words and runs")
    assert not {"duplicate rows", "duplicates across the split"} & kinds(run)
    assert "drift" not in kinds(run)  # levels that only test rows have are no drift on their own


@pytest.mark.parametrize("type_", [pa.int32(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("s"), pa.date32()])
def test_equal_values_of_any_type_are_equal_rows(type_):
    values = pa.array([0, 1, None, 0, 1, 1], pa.int32())
    values = (
        pc.equal(values, 1)
        if type_ == pa.bool_()
        else values.cast(pa.int64() if pa.types.is_timestamp(type_) else pa.int32()).cast(type_)
    )
    table = pa.table({"a": values, "b": values.dictionary_encode()})
    y = np.array([0, 1, 1, 0, 1, 0])
    found, _ = duplicates(table.slice(0, 3), y[:3], table.slice(3), y[3:], ["a", "b"])
    assert found.across.tolist() == [True, True, False]
    assert found.within == 0


def test_numbers_that_float64_rounds_are_different_rows():
    big = pa.table({"id": [2**60, 2**60 + 1, None]})
    found, _ = duplicates(big.slice(0, 1), np.zeros(1), big.slice(1), np.zeros(2), ["id"])
    assert not found.across.any()


def test_drift():
    rng, X, y = plain(1000)
    later = X[500:] + np.array([0, 0.8, 0, 0])
    levels = np.concatenate([rng.choice(3, 500), rng.choice(3, 500, p=[0.7, 0.2, 0.1])]).astype(str)
    first, second = as_table(X[:500], y[:500], level=levels[:500]), as_table(later, y[500:], level=levels[500:])
    kinds = {**dict.fromkeys(("x0", "x1", "x2", "x3"), "number"), "level": "category"}
    found, warned = drift_between(first, second, kinds)
    assert set(warned[0].columns) == {"x1", "level"}
    assert found[0].distance > 0.2
    gaps = pa.table({"x0": pa.array(X[:500, 0], mask=rng.random(500) < 0.4)})
    assert drift_between(first.select(["x0"]), gaps, {"x0": "number"})[1]
    days = [pa.array((np.arange(500) + 200 * k).astype("datetime64[D]")) for k in range(2)]
    assert drift_between(pa.table({"d": days[0]}), pa.table({"d": days[1]}), {"d": "date"})[1]
    run = ep.train(as_table(X[:500], y[:500]), test=as_table(later, y[500:]), **TREE)
    assert [w.columns for w in run.warnings if w.kind == "drift"] == [("x1",)]


def passengers(n=600, seed=1):
    """A table as that of the Titanic: tickets and cabins of a few rows each, prices that repeat, many gaps."""
    rng = np.random.default_rng(seed)
    ticket = rng.zipf(1.6, n) % 500
    return pa.table(
        {
            "ticket": [f"T{t}" for t in ticket],
            "cabin": pa.array([f"C{c}" for c in rng.integers(0, 120, n)], mask=rng.random(n) < 0.77),
            "fare": np.round(rng.gamma(1.0, 30.0, 500), 0)[ticket],
            "age": pa.array(rng.integers(0, 80, n).astype(float), mask=rng.random(n) < 0.2),
            "sex": rng.choice(["male", "female"], n),
        }
    )


KINDS = {"ticket": "category", "cabin": "category", "fare": "number", "age": "number", "sex": "category"}


def test_drift_is_seldom_found_where_there_is_none():
    """Random splits of a table with many levels: at most one alarm in a hundred is promised."""
    table, rng = passengers(), np.random.default_rng(3)
    alarms = 0
    for _ in range(400):
        order = rng.permutation(table.num_rows)
        first, second = (table.take(pa.array(part)) for part in (order[:480], order[480:]))
        alarms += bool(drift_between(first, second, KINDS)[1])
    assert alarms <= 11  # P(more than 11 of 400 at one in a hundred) < 0.1%


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
        assert run.model_.encoder_.columns_["day"] == "calendar"  # a tree cannot know the days to come


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
        X,
        y,
        row_id=np.arange(200),
        ticket=[f"T{i:05d}" for i in rng.permutation(10**5)[:200]],
        story=text,
        nothing=pa.nulls(200),
        same=np.ones(200),
        odd=["3.5"] * 198 + ["unknown", "1"],
    )
    run = ep.train(table, **TREE)
    profile = {p.name: p for p in run.profile}
    dropped = {name for name, p in profile.items() if p.kind == "drop"}
    assert dropped == {"row_id", "ticket", "nothing", "same"}
    assert profile["odd"].kind == "number"
    assert {"identifier", "missing", "constant", "mixed types"} <= kinds(run)
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
