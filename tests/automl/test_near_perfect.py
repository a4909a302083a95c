"""Columns that hold the target together are found by the score that they make possible."""

import numpy as np
import pyarrow as pa
import pytest

import epicycle as ep
from epicycle.automl.checks._near_perfect import alarm, explained, is_nearly_perfect


def rentals(n=600, seed=0):
    """Rentals of an hour: those of guests and of members add up to the target."""
    rng = np.random.default_rng(seed)
    heat = rng.normal(size=n)
    guests, members = (rng.poisson(np.exp(level + 0.5 * heat)) for level in (3.0, 4.0))
    more = {f"x{j}": rng.normal(size=n) for j in range(3)}
    return pa.table({"heat": heat, **more, "guests": guests, "members": members, "all": guests + members})


def test_parts_of_a_sum_are_named():
    said = []
    run = ep.train(rentals(), "all", task="regression", time=4, models="ridge", progress=said.append)
    assert run.tests["r2"].score > 0.999
    (found,) = [w for w in run.warnings if w.kind == "leakage"]
    assert set(found.columns) == {"guests", "members"}
    assert found.severity == "high"
    assert any("together explain it" in line and "--drop 'members'" in line for line in said)
    suspected = {p.name for p in run.profile if "suspected leakage" in p.warnings}
    assert suspected == {"guests", "members"}


def test_without_one_of_them_there_is_no_alarm():
    run = ep.train(rentals(), "all", task="regression", time=1, drop=["guests"], models="ridge")
    assert [w for w in run.warnings if w.kind == "leakage"] == []


def test_classes_that_two_columns_decide():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (900, 6))
    label = np.where(X[:, 1] ^ X[:, 4], "one", "both or none")
    table = pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": label})
    run = ep.train(table, time=4, models="decisiontree")
    (found,) = [w for w in run.warnings if w.kind == "leakage"]
    assert set(found.columns) == {"x1", "x4"}


def test_a_column_that_was_named_is_not_named_again():
    rng = np.random.default_rng(2)
    y = rng.normal(size=400)
    run = ep.train(pa.table({"a": rng.normal(size=400), "copy": 3 * y, "y": y}), time=1.5, models="ridge")
    assert [w.columns for w in run.warnings if w.kind == "leakage"] == [("copy",)]


def test_where_the_time_is_up_the_most_important_are_named(monkeypatch):
    monkeypatch.setattr("epicycle.automl._budget.Budget.left", lambda self, keep=0.0: self.seconds - keep)
    monkeypatch.setattr("epicycle.automl.checks._near_perfect._MAX_COLUMNS", 1)
    run = ep.train(rentals(), "all", task="regression", time=1, models="ridge")
    (found,) = [w for w in run.warnings if w.kind == "leakage"]
    assert set(found.columns[:2]) == {"guests", "members"}
    assert "or others" in found.text


def test_few_right_predictions_are_no_alarm():
    y = np.tile(["a", "b"], 200)
    assert explained(y, y, "classification") == 1
    assert is_nearly_perfect(y, y, "classification")
    assert not is_nearly_perfect(y[:60], y[:60], "classification")
    wrong = np.where(np.arange(400) < 10, "a", y)
    assert explained(y, wrong, "classification") == pytest.approx(0.975)
    assert not is_nearly_perfect(y, wrong, "classification")
    rare = np.repeat(["a", "b"], [396, 4])  # a constant is right on 99% of these
    assert not is_nearly_perfect(rare, np.full(400, "a"), "classification")
    numbers = np.arange(50.0)
    assert is_nearly_perfect(numbers, numbers + 0.1, "regression")
    assert not is_nearly_perfect(numbers, numbers + 2 * (-1.0) ** numbers, "regression")


def test_words_of_the_alarm():
    one, several = alarm("R2 1", ["a"], enough=True), alarm("R2 1", ["a", "b", "c"], enough=True)
    assert "a alone explains it" in one.text
    assert "leave it out (--drop 'a')" in one.text
    assert "a, b and c together explain it" in several.text
    assert "by a and b or others" in alarm("R2 1", ["a", "b"], enough=False).text
