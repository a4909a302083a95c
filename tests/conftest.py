"""What all tests share: helper modules, figures, how many examples are drawn, the machine to itself for some."""

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.core
import pytest
from hypothesis import is_hypothesis_test, settings

HERE = Path(__file__).resolve().parent

# Modules beside the tests (references that share no code with the library, toy estimators, tables) can be imported
# from every test by their names, which are unique; so can the benchmarks, which are no installed package.
_HELPERS = {path.parent for path in HERE.rglob("*.py") if not path.name.startswith(("test_", "conftest"))}
sys.path[:0] = [*sorted(str(folder) for folder in _HELPERS), str(HERE.parent)]

os.environ.setdefault("MPLBACKEND", "Agg")  # figures are drawn without a screen
# Two test processes share two cores. Threads that wait for work in a loop (OpenBLAS for 2^26 cycles, OpenMP for some
# milliseconds) then take the time of the other process: a test of many small products needs 3 s in place of 23 s.
# 2^4 cycles is the least that OpenBLAS takes.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

settings.register_profile("epicycle", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("campaign", settings.get_profile("epicycle"), derandomize=False)
settings.load_profile("epicycle")
#: Seed of the examples of a slow run, by default that of the day: new ones every day, and the same for everybody who
#: looks at a failure on that day. An ordinary run draws the same every time, in the same time.
_SEED = "EPICYCLE_HYPOTHESIS_SEED"
#: An ordinary run draws this fraction of the examples and repetitions that a test asks for; --slow draws all of them.
_FRACTION = 1 / 6
_FEWEST = 8

# Where a shell starts the suite in the background Ctrl-C is ignored, here and in every child that a test starts.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow",
        action="store_true",
        help="only the long campaigns: tests marked slow, and all examples of those that draw them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw the examples of a slow run from a seed of its own; processes that share the run inherit it."""
    if config.getoption("slow"):
        seed = os.environ.setdefault(_SEED, datetime.now(UTC).strftime("%Y%m%d"))
        hypothesis.core.global_force_seed = int(seed)
        settings.load_profile("campaign")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("slow"):
        terminalreporter.write_line(f"random examples: {_SEED}={os.environ[_SEED]}")


def _fewer(number: int) -> int:
    return min(number, max(_FEWEST, round(number * _FRACTION)))


def _on_cluster(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return "client" in item.fixturenames or parameters.get("where") == "cluster"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose what an ordinary or a slow run holds, and what one worker does.

    Serial tests come last and, with those of the cluster, on one worker: few wait for them, and one cluster is enough.
    """
    chosen, others = [], []
    shortened = set()
    for item in items:
        slow = item.get_closest_marker("slow") is not None
        draws = is_hypothesis_test(item.obj)
        in_campaign = slow or draws or "repetitions" in item.fixturenames
        (chosen if (in_campaign if config.getoption("slow") else not slow) else others).append(item)
        if draws and not config.getoption("slow") and item.obj not in shortened:
            shortened.add(item.obj)
            asked = item.obj._hypothesis_internal_use_settings or settings.default
            item.obj._hypothesis_internal_use_settings = settings(asked, max_examples=_fewer(asked.max_examples))
        if item.get_closest_marker("serial") or _on_cluster(item):
            item.add_marker(pytest.mark.xdist_group("one worker"))
    if others:
        config.hook.pytest_deselected(items=others)
    items[:] = sorted(chosen, key=lambda item: item.get_closest_marker("serial") is not None)


@pytest.fixture
def repetitions(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """How often a test repeats itself in this run, of the number of times that a slow run takes."""
    return (lambda number: number) if request.config.getoption("slow") else _fewer


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def client(_cluster: Any) -> Iterator[Any]:
    """Client of a Dask cluster of two processes, the default of this test; one cluster serves all tests."""
    _cluster.wait_for_workers(2)  # an earlier test may have killed one
    with _cluster.as_current():
        yield _cluster


@pytest.fixture(params=["local", "cluster"])
def where(request: pytest.FixtureRequest) -> str:
    """Run a test on Dask's local scheduler, and on the cluster."""
    if request.param == "cluster":
        request.getfixturevalue("client")
    return request.param


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def _share_the_machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lock of the machine: ordinary tests of all workers hold it together, a serial test alone."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    serial = request.node.get_closest_marker("serial") is not None
    with open(tmp_path_factory.getbasetemp().parent / "machine.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if serial else fcntl.LOCK_SH)
        yield
        fcntl.flock(lock, fcntl.LOCK_UN)
