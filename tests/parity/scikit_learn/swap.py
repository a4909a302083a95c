"""A pytest plugin that puts epicycle's classes into scikit-learn's own tests, under the same names.

``python -m pytest -p swap --pyargs sklearn.svm`` (with this folder on the path) runs the tests that scikit-learn ships
in its wheel; every public name that epicycle has too is ours. A test counts if one of our classes was built in it, or
one of our functions called, and if scikit-learn itself does not expect it to fail.

Environment variables: EPICYCLE_SWAP_OUTCOMES names the JSON file of outcomes, EPICYCLE_SWAP_LEFT_OUT tests that are not
run (one to a line, as in the exception tables), EPICYCLE_SWAP_LIMIT the seconds of processor time after which a test
counts as failed.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import epicycle
from epicycle.core.estimator import Estimator

#: Modules of scikit-learn whose public names are replaced.
MODULES = (
    "cluster",
    "decomposition",
    "discriminant_analysis",
    "ensemble",
    "feature_extraction.text",
    "gaussian_process",
    "kernel_approximation",
    "kernel_ridge",
    "linear_model",
    "manifold",
    "manifold._mds",
    "naive_bayes",
    "neighbors",
    "neural_network",
    "svm",
    "tree",
)
#: Modules of scikit-learn whose functions are replaced by those of a package of ours.
PACKAGES = {"manifold": "metrics", "manifold._t_sne": "metrics", "metrics.cluster": "metrics"}
FUNCTIONS = {
    "dict_learning",
    "dict_learning_online",
    "enet_path",
    "fastica",
    "lars_path",
    "lars_path_gram",
    "lasso_path",
    "linkage_tree",
    "locally_linear_embedding",
    "non_negative_factorization",
    "orthogonal_mp",
    "orthogonal_mp_gram",
    "ridge_regression",
    "smacof",
    "sparse_encode",
    "ward_tree",
}

#: Private methods that scikit-learn's tests call to compute their references: lent to our classes.
LENT = {name: "_get_loss" for name in ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")}

built: set[str] = set()


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, noting that it was called."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        built.add(function.__name__)
        return function(*args, **kwargs)

    return call


def swap_functions() -> None:
    """Replace the functions that a package of ours has under the same names."""
    for name, package in PACKAGES.items():
        module = importlib.import_module(f"sklearn.{name}")
        ours = importlib.import_module(f"epicycle.{package}")
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        for public in set(getattr(module, "__all__", own)) & set(ours.__all__):
            setattr(module, public, _counted(getattr(ours, public)))


def swap_names() -> None:
    """Replace the names."""
    swap_functions()
    for name in MODULES:
        module = importlib.import_module(f"sklearn.{name}")
        for public in module.__all__ if hasattr(module, "__all__") else dir(module):
            ours = getattr(epicycle, public, None)
            is_class = isinstance(ours, type) and issubclass(ours, Estimator)
            if public in epicycle.__all__ and (is_class or public in FUNCTIONS):
                if public in LENT:
                    setattr(ours, LENT[public], getattr(getattr(module, public), LENT[public]))
                setattr(module, public, ours if is_class else _counted(ours))  # type: ignore[arg-type]


def _new(cls: type, *args: Any, **kwargs: Any) -> Any:
    built.add(cls.__name__)
    return object.__new__(cls)


outcomes: dict[str, dict[str, Any]] = {}


def pytest_configure() -> None:
    """Swap before the tests import anything; importing this module alone changes nothing."""
    swap_names()
    Estimator.__new__ = _new  # type: ignore[method-assign, assignment]


def matches(test: str, pattern: str) -> bool:
    """Whether "package.tests.module::name" is meant by a pattern.

    The pattern may end with * for all that begins so, may leave the package out ("test_svm::test_libsvm_iris"), and
    may leave the parameters in brackets out.
    """
    starts = (test, test.rpartition(".tests.")[2])
    if pattern.endswith("*"):
        return any(start.startswith(pattern[:-1]) for start in starts)
    return any(pattern in (start, start.partition("[")[0]) for start in starts)


def _name(item: pytest.Item) -> str:
    return f"{item.module.__name__}::{item.nodeid.partition('::')[2]}"  # type: ignore[attr-defined]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    patterns = os.environ.get("EPICYCLE_SWAP_LEFT_OUT", "").split("\n")
    left_out = [item for item in items if any(matches(_name(item), pattern) for pattern in patterns)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


class TestTookTooLongError(Exception):
    """A test that ran past its limit."""


def _out_of_time(*_: Any) -> None:
    raise TestTookTooLongError(f"more than {os.environ['EPICYCLE_SWAP_LIMIT']} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    built.clear()
    signal.signal(signal.SIGPROF, _out_of_time)
    # processor time, because a machine may have other things to do; 0 is no limit
    signal.setitimer(signal.ITIMER_PROF, float(os.environ.get("EPICYCLE_SWAP_LIMIT", "0")))
    began = time.process_time()
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    outcomes.setdefault(_name(item), {}).update(built=sorted(built), seconds=round(time.process_time() - began, 3))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = (yield).get_result()  # type: ignore[misc]
    if report.when == "call" or report.outcome != "passed":
        entry = outcomes.setdefault(_name(item), {})
        # where scikit-learn expects a failure of its own classes neither answer says anything about ours
        entry["outcome"] = "xfail" if hasattr(report, "wasxfail") else report.outcome
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            entry["why"] = str(crash.message if crash else report.longrepr)[:300]


def pytest_sessionfinish() -> None:
    path = os.environ.get("EPICYCLE_SWAP_OUTCOMES")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=0)
