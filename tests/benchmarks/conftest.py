"""The benchmarks are no installed package: they are found from the root of the checkout, the fake tasks from here."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]


@pytest.fixture(autouse=True)
def _children_find_the_fake_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
