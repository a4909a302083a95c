"""A pytest plugin that puts epicycle's classes into scikit-learn's own tests, under the same names.

``python -m pytest -p swap --pyargs sklearn.svm`` (with this folder on the path) runs the tests that scikit-learn ships
in its wheel; every public name that epicycle has too is ours. A test counts if one of our classes was built in it.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

import epicycle
from epicycle.core.estimator import Estimator

#: Modules of scikit-learn whose public names are replaced.
MODULES = (
    "decomposition",
    "ensemble",
    "gaussian_process",
    "kernel_approximation",
    "kernel_ridge",
    "linear_model",
    "neighbors",
    "svm",
    "tree",
)
FUNCTIONS = {"enet_path", "lars_path", "lars_path_gram", "lasso_path", "orthogonal_mp", "orthogonal_mp_gram"}

built: set[str] = set()


def swapped() -> dict[str, list[str]]:
    """Replace the names, and list them by module."""
    done: dict[str, list[str]] = {}
    for name in MODULES:
        module = importlib.import_module(f"sklearn.{name}")
        for public in module.__all__ if hasattr(module, "__all__") else dir(module):
            ours = getattr(epicycle, public, None)
            is_class = isinstance(ours, type) and issubclass(ours, Estimator)
            if public in epicycle.__all__ and (is_class or public in FUNCTIONS):
                setattr(module, public, ours)
                done.setdefault(name, []).append(public)
    return done


def _new(cls: type, *args: Any, **kwargs: Any) -> Any:
    built.add(cls.__name__)
    return object.__new__(cls)


SWAPPED = swapped()
Estimator.__new__ = _new  # type: ignore[method-assign, assignment]
outcomes: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    built.clear()
    yield
    outcomes.setdefault(item.nodeid, {})["built"] = sorted(built)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = (yield).get_result()  # type: ignore[misc]
    if report.when == "call" or report.outcome != "passed":
        entry = outcomes.setdefault(item.nodeid, {})
        entry["outcome"] = report.outcome
        if report.outcome == "failed":
            entry["why"] = str(report.longrepr.reprcrash.message)[:300] if report.longrepr else ""


def pytest_sessionfinish() -> None:
    path = os.environ.get("EPICYCLE_SWAP_OUTCOMES")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=0)
