"""Lines and the status line on terminals of any width: nothing wraps inside a word or a cell, nothing stale remains."""

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

import epicycle as ep
from epicycle.automl import _messages
from epicycle.automl._messages import Messages, StatusLine, wrapped
from epicycle.cli._info import _columns_that_fit, print_methods
from epicycle.cli._train import leaderboard_lines


@pytest.fixture
def on_terminal(monkeypatch):
    """What a terminal of so many columns gets from a function, whose standard output and error it is."""

    def run(columns, work, output=None):
        terminal, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        shown = []

        def read():
            with suppress(OSError):  # Linux's way of saying that the other side has closed the terminal
                while piece := os.read(terminal, 65536):
                    shown.append(piece)

        reader = threading.Thread(target=read)
        reader.start()
        with open(child, "w") as stream, monkeypatch.context() as patched:
            patched.setenv("COLUMNS", str(columns))
            patched.setenv("TERM", "xterm")
            patched.setattr(sys, "stderr", stream)
            patched.setattr(sys, "stdout", stream if output is None else output)
            work()
            stream.flush()
        reader.join(10)
        os.close(terminal)
        return b"".join(shown).decode().replace("\r\n", "\n")

    return run


def screen(sent, columns):
    """The lines on the screen at the end, and how often a line went on in the next."""
    lines, at, overflows = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", sent):
        if part == "\r":
            at = 0
        elif part == "\n":
            lines.append("")
            at = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:at]
        elif not part.startswith("\x1b"):
            if at == columns:
                overflows, at = overflows + 1, 0
                lines.append("")
            lines[-1] = lines[-1][:at].ljust(at) + part + lines[-1][at + 1 :]
            at += 1
    return lines, overflows


LONG = "a second line, " + "which is longer than the terminal is wide and has many words " * 3


def a_training():
    messages = Messages(partial(print, flush=True), 2.0)
    messages.leader("GradientBoosting(" + "learning_rate=0.1, " * 9 + ")")
    messages.line("the first line")
    messages.stage("fitting " + "a model with a long name " * 8)
    time.sleep(1.3)  # a fit that says nothing
    messages.line(LONG)
    messages.close()
    print("the end")


@pytest.mark.parametrize("columns", [80, 110])
def test_the_status_line_moves_and_leaves_nothing_behind(columns, on_terminal):
    sent = on_terminal(columns, a_training)
    lines, overflows = screen(sent, columns)
    assert overflows == 0
    assert lines[0] == "the first line"
    assert lines[-2:] == ["the end", ""]
    assert all("fitting" not in line and "[#" not in line for line in lines)
    drawn = set(re.findall(r"\[#*-*\] \d+ of 2 s", sent))
    assert len(drawn) >= 2  # it moved while the program was busy elsewhere
    assert " ".join(line.strip() for line in lines[1:-2]) == LONG.strip()


def test_lines_go_to_standard_output_though_the_bar_is_on_a_terminal(on_terminal):
    """The bar is on standard error; what is printed goes where standard output goes, whole."""
    kept = io.StringIO()
    sent = on_terminal(80, a_training, kept)
    assert "the first line" not in sent
    assert kept.getvalue() == f"the first line\n{LONG}\nthe end\n"


def test_text_of_the_status_line_fits(monkeypatch):
    line = StatusLine(10.0)
    try:
        line.note = "comparing models " * 20
        for columns in (1, 3, 10, 40, 80, 200):
            assert len(line.text(columns)) < max(columns, 1) + (columns == 0)
        monkeypatch.setattr(_messages.time, "monotonic", lambda: time.perf_counter() + 1e6)
        assert "[####################]" in line.text(200)
    finally:
        monkeypatch.undo()
        line.close()


def test_wrapped_lines_keep_words_and_spaces():
    text = "   1.2 s  best   " + "several words of a sentence " * 8
    lines = wrapped(text, 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("   1.2 s  best   several")
    assert " ".join(line.strip() for line in lines) == text.strip()
    assert wrapped(text, None) == text


def test_without_a_terminal_lines_are_whole():
    lines = []
    messages = Messages(lines.append, 1.0)
    messages.line("word " * 100)
    messages.close()
    assert lines == ["word " * 100]


def a_run():
    rows = [
        {
            "name": f"GradientBoosting(learning_rate=0.{k}, max_leaf_nodes=31, min_samples_leaf=20, subsample=0.8)",
            "score_mean": 0.81234,
            "score_se": 0.0123,
            "n_folds": 5,
            "rows": 1_234_567,
            "seconds": 123.45,
            "status": "out of time beyond 1,234,567 rows",
        }
        for k in range(1, 4)
    ]
    baseline = {"name": "the most frequent class", "score_mean": 0.5}
    return SimpleNamespace(leaderboard=rows, metric=SimpleNamespace(name="balanced_accuracy"), baseline=baseline)


@pytest.mark.parametrize("width", [60, 80, 110, 160])
def test_the_leaderboard_fits(width):
    lines = leaderboard_lines(a_run(), width=width)
    assert len(lines) == 5
    assert max(map(len, lines)) <= width
    assert all("0.8123" in line for line in lines[1:4])
    assert all(line.startswith("Gradient") for line in lines[1:4])
    assert lines[0].split()[:2] == ["model", "balanced_accuracy"]
    if width == 160:
        assert "seconds" in lines[0]


@pytest.mark.parametrize("width", [80, 110, 200])
def test_the_list_of_methods_breaks_no_words(width, on_terminal):
    lines, overflows = screen(on_terminal(width, lambda: print_methods("linear", as_json=False)), width)
    assert overflows == 0
    shown = set(" ".join(lines).split())
    for method in ep.methods("linear", functions=True):
        assert set(f"{method.name} {method.summary}".split()) <= shown
        if "engines" in lines[1].split():
            assert set(", ".join(method.engines).split()) <= shown
        if "certificate" in lines[1].split():
            assert set(method.certificate.split()) <= shown
        if width == 200:
            assert set(", ".join(method.solvers).split()) <= shown
            assert "certificate" in lines[1].split()


@pytest.mark.parametrize("width", range(80, 200, 10))
def test_columns_are_left_out_where_there_is_no_room(width):
    cells = {"method": ["LinearSVC"], "summary": ["a summary"], "solvers": ["interior_point, dual"]}
    chosen = _columns_that_fit({**cells, "engines": ["memory, files"], "certificate": ["duality gap"]}, width)
    assert {"method", "summary"} <= set(chosen)
    assert sum(chosen.values()) + 3 * len(chosen) <= width
