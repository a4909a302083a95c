"""A save that is interrupted, by a signal or by an error, leaves the old file."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from epicycle.exceptions import DataFileError, ParameterTypeError
from epicycle.io import load, save


def test_killed_many_times(tmp_path, repetitions):
    script, kills = Path(__file__).parent / "killed_saves.py", repetitions(200)
    run = subprocess.run(
        [sys.executable, script, tmp_path, str(kills)], check=True, capture_output=True, text=True, timeout=300
    )
    outcome = json.loads(run.stdout)
    assert sum(outcome["found"]) == kills
    assert min(outcome["found"]) > 0  # both models were written
    assert outcome["interrupted"] >= kills // 10  # and many kills fell into the middle of a write


@pytest.mark.parametrize("step", ["fsync", "replace", "fdopen"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
def test_errors_leave_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, error):
    path = tmp_path / "m.epi"
    save("old", path)
    real = getattr(os, step)

    def fail(*args, **kwargs):
        if step == "fdopen":
            real(*args, **kwargs).close()
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        expected = DataFileError if isinstance(error, OSError) else KeyboardInterrupt
        with pytest.raises(expected):
            save("new", path)
    assert list(tmp_path.iterdir()) == [path]
    assert load(path) == "old"


def test_content_is_on_the_disk_before_the_rename(tmp_path, monkeypatch):
    events = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (events.append(name), real(*args))[1])
    save([1], tmp_path / "m.epi")
    assert events == ["fsync", "replace", "fsync"]  # the file, the rename, the directory


def test_mode_follows_the_umask(tmp_path):
    for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(mask)
        try:
            save([1], tmp_path / "m.epi")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "m.epi").stat().st_mode) == mode


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(1, "plain")
    save(2, Path("with.model.extension"))
    (tmp_path / "link.epi").symlink_to(tmp_path / "plain")
    save(3, tmp_path / "link.epi")
    assert (load("plain"), load("with.model.extension")) == (3, 2)
    assert (tmp_path / "link.epi").is_symlink()
    save(4, tmp_path / ("x" * 250 + ".epi"))
    assert load(tmp_path / ("x" * 250 + ".epi")) == 4


class Unstorable:
    """Would be reported, were it looked at."""


def test_bad_targets_are_named_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    for path, message in (
        (tmp_path, f"path is a directory.*{tmp_path}"),
        (tmp_path / "gone" / "m.epi", f"the directory {tmp_path}/gone does not exist"),
        (tmp_path / "file" / "m.epi", f"{tmp_path}/file is not a directory"),
        ("/dev/null", "not a regular file: /dev/null"),
    ):
        with pytest.raises(DataFileError, match=message) as caught:
            save(Unstorable(), path)
        assert isinstance(caught.value, OSError)
    for path in (None, 3, b"m.epi", "", "a\0b"):
        with pytest.raises(ParameterTypeError, match="path must"):
            save(Unstorable(), path)


def test_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(DataFileError, match=f"no permission to create files in {tmp_path}"):
        save(Unstorable(), tmp_path / "m.epi")


def test_threads_saving_to_one_path(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    models = [np.full(1000, i) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda model: save(model, tmp_path / "m.epi"), models * 5))
    assert len(set(load(tmp_path / "m.epi"))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m.epi"]
