"""A page as PDF, printed by Chromium where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from epicycle.core._exceptions import DataFileError, ParameterError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
#: Seconds that a page may take.
_PATIENCE = 180


def browser() -> str:
    """The path of the browser, or an error that says what --pdf needs."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise ParameterError("--pdf: needs Chromium, Chrome or Edge, and none was found on the path")
    return found


def print_page(page: Path, target: Path, executable: str) -> None:
    """Print an HTML file to a PDF file."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            executable,
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-sync",
            f"--user-data-dir={profile}",
            "--no-pdf-header-footer",
            f"--print-to-pdf={target}",
            page.absolute().as_uri(),
        ]
        # As root, as in containers, the sandbox of Chromium does not start; the page is our own and loads nothing.
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataFileError(f"--pdf: {Path(executable).name} did not print the page: {error}") from None
    if not target.exists() or target.stat().st_size == 0:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise DataFileError(f"--pdf: {Path(executable).name} did not print the page: {said[0][:200]}")
