"""Tasks that are over at once: every way in which an implementation can end, and what it can be asked."""

import importlib
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np

from benchmarks.task import Implementation, Measured, Task


def make(directory, quick):
    return {"x": np.arange(4.0), "log": np.array(str(directory / "log.txt"))}


def note(data, text):
    with open(str(data["log"]), "a") as log:
        log.write(f"{text}\n")


def read_log(data):
    with open(str(data["log"])) as log:
        return log.read().split()


def takes(seconds, error):
    """An implementation that says how long it took: the arithmetic is tested, not the clock."""
    return lambda data: Measured(seconds, {"error": np.array(error)})


def errors(data, solutions):
    return {name: {"error": float(s["error"])} for name, s in solutions.items()}


RACE = Task(
    name="race",
    title="three contenders",
    description="The fastest is wrong.",
    make=make,
    implementations=(
        Implementation("sloppy", "peer", takes(0.001, 1.0)),
        Implementation("slow", "peer", takes(0.4, 1e-12)),
        Implementation("fast", "peer", takes(0.2, 1e-12)),
        Implementation("ours", "epicycle", takes(0.1, 1e-12)),
    ),
    quality=errors,
    tolerance=1e-6,
)


def hang(data):
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    note(data, worker.pid)
    time.sleep(120)


def segfault(data):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(data):
    print("out of order", file=sys.stderr, flush=True)
    os._exit(3)


def refuse(data):
    raise ValueError("not with /etc/this\nand more")


def need(data):
    importlib.import_module("a_module_that_nobody_has")


def chatter(data):
    print("a library that prints")
    os.write(1, b'{"seconds": 0}\n')
    return {"error": data["x"].sum()}


def endings(data, solutions):
    """The log is part of the data, and what it holds is gone with the directory: keep it as a quality."""
    return {name: {"sum": float(s["error"]), "worker": float(read_log(data)[0])} for name, s in solutions.items()}


ENDINGS = Task(
    name="endings",
    title="every way to end",
    description="",
    make=make,
    implementations=(
        Implementation("hangs", "peer", hang),
        Implementation("segfaults", "peer", segfault),
        Implementation("leaves", "peer", leave),
        Implementation("refuses", "peer", refuse),
        Implementation("needs", "peer", need),
        Implementation("chatters", "epicycle", chatter),
    ),
    quality=endings,
    cap=1.0,
)


def allocate(megabytes):
    def run(data):
        np.ones(megabytes * 125_000).sum()

    return run


MEMORY = Task(
    name="memory",
    title="200 MB and none",
    description="",
    make=make,
    implementations=(
        Implementation("large", "epicycle", allocate(200)),
        Implementation("small", "epicycle", allocate(1)),
    ),
)


def stop_at(data, tol):
    note(data, f"{tol:g}")
    return {"error": np.array(tol)}


def exact(data):
    return {"error": np.array(0.0)}


def errors_and_calls(data, solutions):
    """Relative to the reference, which must be there; with the number of calls so far."""
    best = float(solutions["reference"]["error"])
    calls = float(len(read_log(data))) if os.path.exists(str(data["log"])) else 0.0
    return {name: {"error": float(s["error"]) - best, "calls": calls} for name, s in solutions.items()}


TOLERANCES = Task(
    name="tolerances",
    title="the loosest that will do",
    description="",
    make=make,
    implementations=(
        Implementation("reference", "reference", exact),
        Implementation("stops", "epicycle", stop_at, tolerances=(1e-1, 1e-2, 1e-3, 1e-4)),
        Implementation("never there", "peer", stop_at, tolerances=(1e-1, 1e-2)),
    ),
    quality=errors_and_calls,
    tolerance=2e-3,
)


def turn(name):
    def run(data):
        note(data, f"{name}:{os.getpid()}")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return {"threads": np.array(int(os.environ["OMP_NUM_THREADS"])), "cores": np.array(cores)}

    return run


class Seats:
    """A state that notes when it is closed."""

    def __init__(self, data):
        self.data = data

    def __getitem__(self, key):
        return self.data[key]

    def close(self):
        note(self.data, "closed:0")


SEEN = []


def remember(data, solutions):
    SEEN.append((read_log(data), solutions))
    return {}


TURNS = Task(
    name="turns",
    title="who runs when, and with what",
    description="",
    make=make,
    implementations=(
        Implementation("a", "epicycle", turn("a"), threads=1),
        Implementation("b", "epicycle", turn("b"), setup=Seats),
        Implementation("c", "epicycle", turn("c"), fresh=True),
    ),
    quality=remember,
)
