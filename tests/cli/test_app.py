"""Exit codes, messages and the version: how the command behaves, whatever it is asked to do."""

import importlib.metadata
import os
import signal
import subprocess
import sys

import pytest

from epicycle.cli import main


def run(*arguments, code=None, **options):
    program = ["-m", "epicycle"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *program, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"epicycle {importlib.metadata.version('epicycle')}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["methods", "--help"]])
def test_quick_answers_import_no_learning_library(arguments):
    code = (
        "import sys; from epicycle.cli import main; status = main(sys.argv[1:]); "
        "assert not {'numpy', 'sklearn', 'scipy', 'pyarrow'} & set(sys.modules); sys.exit(status)"
    )
    done = run(*arguments, code=code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_without_arguments_it_shows_the_commands(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(
        command in out for command in ("train", "predict", "report", "cv", "compare", "methods", "show", "--version")
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fit"], "fit"),
        (["methods", "--colour"], "--colour"),
        (["methods", "--family"], "--family"),
        (["show"], "MODEL.epi"),
        (["show", "a.epi", "b.epi"], "b.epi"),
        (["--verbose"], "--verbose"),
    ],
)
def test_wrong_command_lines_get_one_line(arguments, named, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("epicycle: ")
    assert captured.err.count("\n") == 1
    assert named in captured.err


def test_console_script_is_installed():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="epicycle")
    assert script.load() is main


def test_ctrl_c_ends_with_130_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr("epicycle.cli._info.methods", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    assert main(["methods"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_of_our_own_is_not_hidden(monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("epicycle.cli._info.methods", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main(["methods"])


def test_a_reader_that_leaves_early_is_no_error():
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "epicycle", "methods"], stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=120
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")
