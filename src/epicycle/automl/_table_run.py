"""Common parts of the results of commands on tables: the record for a report, and the files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from epicycle.automl._output import TABLE_DOCS, write_folder
from epicycle.automl._training_run import encoding_plan, environment
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.core._docs import documented
from epicycle.report._plain import plain


class TableRun(ABC):
    """Result of a command on a table."""

    source: str
    seed: int

    def __repr__(self) -> str:
        return str(self)

    @abstractmethod
    def _files(self) -> Mapping[str, Callable[[Path], None]]:
        """The functions that write the files, by name."""

    @documented(TABLE_DOCS)
    def save(
        self, directory: str | os.PathLike[str], *, more: Mapping[str, Callable[[Path], None]] | None = None
    ) -> Path:
        """Write the files of the run into a folder, all of them or none."""
        return write_folder(directory, {**self._files(), **(more or {})})

    def _environment(self) -> dict[str, Any]:
        """Versions and seed, without times: a record repeats."""
        versions = environment(self.seed, 0.0, 0.0)
        return {key: versions[key] for key in versions if key not in ("seconds", "budget")}


class ProfiledTableRun(TableRun):
    """Result of a command on a table whose columns were checked and encoded."""

    profile: list[ColumnProfile]
    warnings: list[DataIssue]
    script: str

    def _record(self, title: str, rows: int, content: Mapping[str, Any], **data: Any) -> dict[str, Any]:
        """The run in plain values; `data` adds to the facts on the table, `content` is the result by its name."""
        return {
            "title": title,
            "data": {"rows": rows, "columns": len(self.profile), "source": self.source, **data},
            "columns": [{**asdict(p), "missing": p.missing / max(rows, 1)} for p in self.profile],
            "warnings": plain(self.warnings),
            "plan": encoding_plan(self.profile),
            **content,
            "environment": self._environment(),
            "reproduce": self.script,
        }
