"""What all tests share: the hypothesis profile, and the machine to itself for tests that measure it."""

import fcntl
import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("ci")

# Where a shell starts the suite in the background Ctrl-C is ignored, here and in every child that a test starts.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Serial tests come last and on one worker, so that hardly anything ever waits for them."""
    for item in items:
        if item.get_closest_marker("serial"):
            item.add_marker(pytest.mark.xdist_group("serial"))
    items.sort(key=lambda item: item.get_closest_marker("serial") is not None)


@pytest.fixture(autouse=True)
def _share_the_machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A lock that ordinary tests of all workers hold together, and a serial test holds alone."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    serial = request.node.get_closest_marker("serial") is not None
    with open(tmp_path_factory.getbasetemp().parent / "machine.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if serial else fcntl.LOCK_SH)
        yield
        fcntl.flock(lock, fcntl.LOCK_UN)
