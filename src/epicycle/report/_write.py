"""The page and its JSON twin as files, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

from epicycle.io._atomic import check_target, write_atomically
from epicycle.report._page import html
from epicycle.report._plain import plain

__all__ = ["write"]


def write(
    record: Mapping[str, Any],
    path_html: str | PathLike[str] | None = None,
    path_json: str | PathLike[str] | None = None,
) -> None:
    """Write the report as an HTML page and as JSON.

    Both are made before either is written, and each appears in one step: whatever goes wrong, no file is left half
    written. The JSON file has the whole record, also what the page has no room for; numbers that are not finite are
    null.

    Parameters
    ----------
    record : mapping
        As described by ``epicycle.report.schema.Record``.
    path_html, path_json : str or path, optional
        Where to write; a file that is there is replaced. None leaves that one out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from epicycle import report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write({"title": "Wine"}, Path(folder, "report.html"), Path(folder, "report.json"))
    ...     print(Path(folder, "report.json").read_text())
    {
     "title": "Wine"
    }
    <BLANKLINE>
    """
    page = html(record)
    twin = json.dumps(plain(record), allow_nan=False, indent=1) + "\n"
    made = [(path, what) for path, what in ((path_html, page), (path_json, twin)) if path is not None]
    targets = [(check_target(path), what.encode()) for path, what in made]
    for target, content in targets:
        write_atomically(target, (content,))
