"""95% intervals hold the effect as often as they say; the table of the documentation is that of the cases at hand."""

import csv
from pathlib import Path

import pytest

import epicycle as ep
from benchmarks.coverage.__main__ import OUT
from benchmarks.coverage.cases import CASES

QUICK = ("regression", "entropy", "cbps")


def lines():
    with Path(OUT).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_has_every_case_and_every_interval_covers():
    """Of 500 studies; ``python -m benchmarks.coverage`` writes the table."""
    found = [(line["intervals"], line["studies"], int(line["rows"])) for line in lines()]
    assert found == [(case.method, case.studies, case.rows) for case in CASES]
    for line in lines():
        assert 0.93 <= float(line["coverage"]) <= 0.97, line


@pytest.mark.parametrize("case", [c for c in CASES if any(f'"{name}"' in c.method for name in QUICK)])
def test_intervals_cover(case):
    assert case.share(40) >= 0.85  # 95% less three standard errors of 40 studies


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_intervals_of_every_method_cover(number):
    with ep.config(n_jobs=1):
        assert CASES[number].share(80) >= 0.87  # 95% less three standard errors of 80 studies
