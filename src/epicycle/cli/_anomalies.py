"""``epicycle anomalies``: find the rows of a table that are unlike the others, print the first, write the folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epicycle.automl import AnomalyRun, anomaly_table
from epicycle.cli._table_command import run_table_command

_SHOWN = 10  # rows that are printed


def run_anomalies(data: str, **options: Any) -> None:
    """Search, write the folder, print the result."""
    run_table_command(anomaly_table, data, "anomalies", lines_of, **options)


def lines_of(run: AnomalyRun) -> Iterator[str]:
    """The verdict, the candidates and the most unusual rows."""
    yield run.verdict
    for row in run.candidates:
        figures = ", ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in row.items() if key != "name")
        yield f"  {row['name']:<30} {figures}"
    for words in run.failed:
        yield f"not compared: {words}"
    for row, why in zip(run.order[:_SHOWN].tolist(), run.reasons, strict=False):
        yield f"row {row}{'' if run.flagged[row] else ' (not reported)'}: {why}"
