"""The page and its twin: bounded, escaped, deterministic, whole or not there."""

import errno
import json
import math
import os
import re

import numpy as np
import parsed_page
import pytest
import record
from parsed_page import parsed

import epicycle as ep
from epicycle import report
from epicycle.exceptions import DataFileError, ParameterTypeError
from epicycle.report._plain import plain, shown, text
from epicycle.report._wording import certified, headline, next_steps
from epicycle.report.schema import Curves, Record

LIMIT = 3_000_000
HOSTILE = "</script></style><script>alert(1)</script>\"'><svg onload=x>&\x00\ud800\u202e😀"


@pytest.fixture(scope="module")
def full():
    return record.classification()


def test_says_what_a_newcomer_needs(full):
    page = report.html(full)
    words = re.sub(r"\s+", " ", "".join(parsed(page).texts))
    assert len(page.encode()) < 300_000
    test = full["test"]
    assert f"its accuracy is {shown(test['score'], 3)}; with 95% confidence the true accuracy is between" in words
    assert "so the model is significantly better than the baseline" in words
    assert f"To predict malignant from 569 rows of 10 columns, {full['best']} is the best of 6 candidates." in words
    assert "Yes, the optimum is certified." in words
    for finding in full["findings"]:
        assert finding["verdict"][1:] in words
    for anchor in ("data", "models", "quality", "proof", "limits", "earned", "fails", "threshold", "reproduce"):
        assert f'<section id="{anchor}">' in page
    assert parsed(report.html(record.regression()))


def test_same_record_same_bytes(full):
    assert report.html(full) == report.html(json.loads(json.dumps(plain(full))))


@pytest.mark.parametrize("key", Record.__annotations__)
def test_every_key_is_optional(full, key):
    report.html({k: v for k, v in full.items() if k != key})
    if key in full:
        parsed(report.html({key: full[key]}))


@pytest.mark.parametrize(
    "junk", [None, math.nan, -3, 10**400, 1e308, "text", HOSTILE, [], [None], ["a", {}], {}, {"a": [math.inf]}, True]
)
def test_junk_in_any_place_does_no_harm(full, junk):
    checked = parsed_page.parsed

    def parsed(page):
        assert "NaN" not in page
        assert "Infinity" not in page
        return checked(page) if junk is HOSTILE else None

    small = {**full, "columns": full["columns"][:1], "curves": {}, "findings": full["findings"][:2]}
    for key in Record.__annotations__:
        parsed(report.html({**small, key: junk}))
    for key in Curves.__annotations__:
        curves = full["curves"].get(key)
        parsed(report.html({"curves": {key: junk}}))
        if isinstance(curves, dict):
            for inner in curves:
                parsed(report.html({"curves": {key: {**curves, inner: junk}}}))
    for place in ("columns", "warnings", "leaderboard", "findings"):
        entry = full[place][0]
        parsed(report.html({place: [{**dict.fromkeys(entry, junk), "name": junk}, junk, {**entry, "params": junk}]}))
    for place in ("data", "test", "baseline", "metric"):
        parsed(report.html({**small, place: dict.fromkeys(full[place], junk)}))


@pytest.mark.parametrize("sign", [HOSTILE, "&"], ids=["hostile", "ampersands"])
def test_ten_thousand_hostile_columns_stay_small(full, sign):
    name = (sign * 1_000)[:1_000]
    many = {
        **full,
        "title": name,
        "columns": [
            {
                "name": f"{name}{i}",
                "kind": name,
                "treatment": name,
                "warnings": [name] * 9,
                "missing": 0.1,
                "sketch": {"levels": [name] * 20, "counts": list(range(20))},
            }
            for i in range(10_000)
        ],
        "warnings": [{"kind": name, "severity": "high", "text": name, "columns": [name] * 3_000}] * 300,
        "leaderboard": [
            {"name": name, "params": {f"{name}{k}": name for k in range(5)}, "score_mean": i, "status": name}
            for i in range(500)
        ],
        "findings": [
            {
                "slot": slot,
                "verdict": name * 9,
                "next_steps": [name] * 99,
                "notes": [name] * 99,
                "table": {f"{name}{j}": [name] * 99 for j in range(30)},
                "examples": {name: [name] * 999},
            }
            for slot in ("bias_variance", "optimizer_or_objective", "ablation", "slices", "threshold", *"abcdefghij")
        ],
        "environment": {f"{name}{i}": name for i in range(1_000)},
        "plan": [name] * 1_000,
        "reproduce": name * 5_000,
        "curves": {
            "calibration": {k: np.linspace(0, 1, 500) for k in ("predicted", "observed", "lower", "upper", "counts")},
            "roc": {"fpr": np.linspace(0, 1, 9_999), "tpr": np.linspace(0, 1, 9_999)},
            "confusion": {"labels": [name] * 100, "counts": np.ones((100, 100))},
            "importances": [{"name": f"{name}{i}", "mean": i, "se": 1} for i in range(10_000)],
            "search": [{"seconds": i, "name": name, "score": i % 7, "best": 6} for i in range(2_000)],
        },
    }
    page = report.html(many)
    assert len(page.encode()) < LIMIT
    words = "".join(parsed(page).texts)
    assert "and 9,900 more columns" in words
    assert "and 485 more models" in words


def test_twin_has_the_whole_record(full, tmp_path):
    given = {**full, "numbers": np.array([1.5, math.nan]), "unknown": object, "tuple": (1, np.int64(2))}
    report.write(given, tmp_path / "r.html", tmp_path / "r.json")
    twin = json.loads((tmp_path / "r.json").read_text())
    assert twin == plain(given)
    assert twin["numbers"] == [1.5, None]
    assert twin["tuple"] == [1, 2]
    assert twin["certificate"]["holds"] is True
    assert (tmp_path / "r.html").read_text() == report.html(given) == report.html({**twin})
    report.write({"title": HOSTILE}, None, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == {"title": HOSTILE}
    assert sorted(os.listdir(tmp_path)) == ["r.html", "r.json"]


def test_full_disk_leaves_nothing(full, tmp_path, monkeypatch):
    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("epicycle.io._atomic.os.fsync", full_disk)
    with pytest.raises(DataFileError, match=r"cannot write .*r\.html: No space left"):
        report.write(full, tmp_path / "r.html", tmp_path / "r.json")
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    with pytest.raises(DataFileError, match="does not exist"):  # both paths are checked before either is written
        report.write(full, tmp_path / "r.html", tmp_path / "nowhere" / "r.json")
    assert os.listdir(tmp_path) == []


def test_record_must_be_a_mapping():
    with pytest.raises(ParameterTypeError, match="record must be a mapping, got list"):
        report.html([])


def test_words_follow_the_numbers():
    def said(**test):
        metric = {"name": "rmse", "greater_is_better": test.pop("greater", True)}
        return " ".join(headline({"test": {"score": 0.5, "level": 0.95, **test}, "metric": metric}))

    assert "<strong>at least 0.400</strong>" in said(lower=0.4)
    assert "<strong>at most 0.600</strong>" in said(upper=0.6)
    assert "confidence" not in said()
    assert "99% confidence" in said(lower=0.4, level=0.99)
    assert "99.9% confidence" in said(lower=0.4, level=0.999)
    assert "significantly better than the baseline" in said(lower=0.4, upper=0.6, baseline_score=0.3)
    assert "does not show" in said(lower=0.4, upper=0.6, baseline_score=0.45)
    assert "significantly better than the baseline" in said(lower=0.4, upper=0.6, baseline_score=0.7, greater=False)
    assert "does not show" in said(lower=0.4, upper=0.6, baseline_score=0.3, greater=False)


def test_certificate_in_words():
    def state(*fields):
        return certified(plain(ep.Certificate(*fields)))[0]

    assert state("duality gap", 1e-9, 1e-8, "m") == "good"
    assert state("duality gap", 1e-7, 1e-8, "m") == "bad"
    assert state("duality gap", math.nan, 1e-8, "m") == "bad"
    assert state("none", 0.0, 0.0, "nothing is minimised") == "none"
    assert certified({"kind": "duality gap", "value": 1e-9, "tolerance": 1e-8})[0] == "good"


def test_next_steps_put_the_gravest_first():
    steps = next_steps(
        {
            "warnings": [{"severity": "low", "text": "no matter"}, {"severity": "high", "text": "leak in x"}],
            "certificate": {"kind": "duality gap", "value": 1.0, "tolerance": 1e-8},
            "findings": [
                {"slot": "ablation", "next_steps": ["drop z", "more"]},
                {"slot": "bias_variance", "next_steps": ["add rows"]},
            ],
        }
    )
    assert steps[0] == "Leak in x."
    assert steps[1].startswith("Let the optimiser converge")
    assert steps[2:] == ["Add rows.", "Drop z.", "More."]


def test_numbers_are_short():
    given = (0, 3, -0.0, 0.97421, 12345, 1234.567, 1.5e9 + 0.5, 3.21e-12, None, math.nan, "x", True)
    assert [shown(v) for v in given] == [
        "0",
        "3",
        "0",
        "0.9742",
        "12,345",
        "1,235",
        "1.5e9",
        "3.21e-12",
        "–",
        "–",
        "–",
        "–",
    ]
    assert text("a" * 50, 10) == "aaaaaaa..."
    assert text("a\x00\ud800\u202eb") == "a\ufffd\ufffd\ufffdb"


def test_dark_colours_are_said_twice_alike():
    style = report.html({}).partition("<style>")[2].partition("</style>")[0]
    first, second = re.findall(r"color-scheme: dark;(.*?)\}", style, re.DOTALL)
    assert first == second


def test_a_plan_of_nonsense_is_a_page():
    nonsense = {
        "planning": {
            "policy": [None, {"value": "x", "lower": []}, 3],
            "cells": [["a"], [1e9, 2], None],
            "certificate": 7,
        }
    }
    assert report.html(nonsense).startswith("<!DOCTYPE html>")
    assert "<script>alert" not in report.html({"planning": {"method": "<script>alert(1)</script>", "states": 2}})
