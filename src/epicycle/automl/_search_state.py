"""The state of a search in a file, one line for each evaluation, so that an interrupted search can go on.

A line is written after each candidate; a line that was cut off by a crash is left out. Results are found again by the
candidate, the number of rows and the folds, and the clock is set to the time at which they were there: a search that
goes on takes the same decisions as one that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.automl._evaluation import FoldScore
from epicycle.core._exceptions import DataFileError, ParameterError

#: Name of the file in the folder of a run.
STATE_FILE = "search.jsonl"
#: Rows that tell whether a table is the same.
_COMPARED_ROWS = 20_000
_KEPT = ("fold", "score", "seconds", "rounds", "tie", "scale", "failure")


class SearchState:
    """Results of a search, in memory and, with a folder, in its file."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = None if folder is None else folder / STATE_FILE
        #: Time limit of the run that began the search.
        self.seconds: float | None = None
        self._found: dict[tuple[str, int, int], tuple[FoldScore, float]] = {}
        self._made_folder = False

    def open(self, settings: Mapping[str, Any], seconds: float) -> int:
        """Read what the file holds, or begin it; the number of results that were found."""
        if self.path is None:
            return 0
        lines = _lines_of(self.path)
        if not lines:
            self._begin({"settings": dict(settings), "seconds": seconds})
            return 0
        self._check(lines[0].get("settings", {}), settings)
        self.seconds = float(lines[0].get("seconds", seconds))
        for line in lines[1:]:
            for found in line["results"]:
                score = float("nan") if found["score"] is None else found["score"]
                tie = -np.inf if found["tie"] is None else found["tie"]
                result = FoldScore(**{**found, "score": score, "tie": tie})
                self._found[line["name"], line["rows"], result.fold] = result, line["spent"]
        return len(self._found)

    def results(self, name: str, rows: int, folds: Sequence[int]) -> tuple[list[FoldScore], float] | None:
        """The results of a candidate, and the seconds that were spent when they were there; None where one lacks."""
        found = [self._found.get((name, rows, fold)) for fold in folds]
        kept = [one for one in found if one is not None]
        return ([result for result, _ in kept], max(at for _, at in kept)) if kept and len(kept) == len(found) else None

    def add(self, name: str, rows: int, results: Sequence[FoldScore], spent: float) -> None:
        """Write the results of a candidate."""
        if self.path is None:
            return
        kept = [{key: _number(value) for key, value in asdict(r).items() if key in _KEPT} for r in results]
        self._append({"name": name, "rows": rows, "spent": round(spent, 4), "results": kept})

    def discard(self) -> None:
        """Take the file away, and the folder where it was made for it."""
        if self.path is not None and self._made_folder:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
                self.path.parent.rmdir()

    def _check(self, before: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            if before.get(name) != value:
                assert self.path is not None
                raise ParameterError(
                    f"resume={str(self.path.parent)!r}: holds the search of another run, whose {name} was "
                    f"{before.get(name)!r:.60}; here it is {value!r:.60}"
                )

    def _begin(self, header: Mapping[str, Any]) -> None:
        assert self.path is not None
        self._made_folder = not self.path.parent.exists()
        self.path.parent.mkdir(exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._append(header)

    def _append(self, line: Mapping[str, Any]) -> None:
        assert self.path is not None
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise DataFileError(f"cannot write {self.path}: {error.strerror or error}") from error


def _lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of the file that are whole; the rest of one that was cut off is taken away."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataFileError(f"cannot read {path}: {error.strerror or error}") from error
    whole = content[: content.rfind(b"\n") + 1]
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise DataFileError(f"{path}: no state of a search: {error}") from None
    if any(not isinstance(line, dict) for line in lines):
        raise DataFileError(f"{path}: no state of a search")
    if len(whole) < len(content):
        path.write_bytes(whole)
    return lines


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def fingerprint(features: np.ndarray, y: np.ndarray) -> str:
    """A short text that differs for other rows."""
    step = max(1, len(y) // _COMPARED_ROWS)
    digest = hashlib.blake2b(np.ascontiguousarray(features[::step]).tobytes(), digest_size=8)
    digest.update(str(features.shape).encode())
    digest.update(json.dumps(y[::step].tolist(), default=str).encode())
    return digest.hexdigest()
