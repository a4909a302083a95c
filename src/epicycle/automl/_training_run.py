"""Result of a training run: the model, the leaderboard, the test score, the findings, and the files."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from epicycle.automl._metrics import Metric, score_record
from epicycle.automl._output import TABLE_DOCS, write_folder
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.automl.tables._table_model import TableModel
from epicycle.core._certificate import Certificate
from epicycle.core._checks import optional_import
from epicycle.core._docs import documented
from epicycle.io import save
from epicycle.io._atomic import write_atomically
from epicycle.io._files import current_versions
from epicycle.report._finding import Finding
from epicycle.report._plain import plain
from epicycle.report._summary import report_summary
from epicycle.select._scorers import TestScore


@dataclass(frozen=True)
class TestPart:
    """The test set: indices of its rows in the source, their targets, and the predictions of the model."""

    __test__ = False  # no test, whatever its name

    rows: np.ndarray
    y: np.ndarray
    responses: Mapping[str, np.ndarray]
    weight: np.ndarray | None = None


@dataclass(repr=False)
class TrainingRun:
    """Result of :func:`epicycle.train`.

    Attributes
    ----------
    model_ : TableModel
        The winner, fitted to all training rows. Takes tables with the columns of the data.
    leaderboard : list of dict
        The candidates from best to worst: name, params, score_mean, score_se, seconds, n_folds, rows, rounds, status.
    baseline : dict
        The score of a constant.
    test : TestScore
        The score on the test set with its interval at 95%.
    tests : dict of TestScore
        Further metrics of the test set.
    certificate : Certificate
        Of the fit.
    findings : dict of Finding
        Diagnoses: "bias_variance", "optimizer_or_objective", "ablation", "slices", "threshold".
    skipped : dict of str
        Diagnoses that were skipped, and why.
    importances : list of dict
        Loss of score when a column is shuffled.
    profile : list of ColumnProfile
        Contents of each column, and how it is encoded.
    warnings : list of DataIssue
    test_part : TestPart
    interval : dict, or None
        Of a regression: half width of the prediction intervals at their level, and their coverage of the test set. With
        ``quantile``: that level, and the share of the test rows at or below their prediction.
    groups : dict, or None
        With ``group_report``: rates of each group of the test set, with intervals.
    explanations : dict
        "partial_dependence" of the most important columns, and "contributions" to the typical, best and worst row.
    restriction : dict, or None
        With ``interpretable=True``: name and score of the best candidate that is not readable on the folds of the
        winner, and the difference with its standard error.
    interrupted : bool
        Whether an interrupt ended the search.
    script : str
        The text of train.py.
    seconds : float
    """

    model_: TableModel
    metric: Metric
    task: str
    source: str
    target: str
    how: str
    leaderboard: list[dict[str, Any]]
    baseline: dict[str, Any]
    test: TestScore
    tests: dict[str, TestScore]
    baseline_test: float
    certificate: Certificate
    profile: list[ColumnProfile]
    warnings: list[DataIssue]
    test_part: TestPart
    script: str
    sizes: dict[str, int]
    seed: int
    budget: float
    findings: dict[str, Finding] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    importances: list[dict[str, Any]] = field(default_factory=list)
    examples: dict[str, list[Any]] = field(default_factory=dict)
    drift: list[dict[str, Any]] = field(default_factory=list)
    search_history: list[dict[str, Any]] = field(default_factory=list)
    without_duplicates: TestScore | None = None
    interval: dict[str, Any] | None = None
    correlations: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, Any] | None = None
    explanations: dict[str, Any] = field(default_factory=dict)
    restriction: dict[str, Any] | None = None
    interrupted: bool = False
    seconds: float = 0.0
    created: str = ""

    @property
    def table(self) -> Any:
        """The leaderboard as a pandas DataFrame."""
        return optional_import("pandas", "TrainingRun.table").DataFrame(self.leaderboard)

    def __str__(self) -> str:
        best = self.leaderboard[0]
        lines = [
            f"{best['name']} predicts {self.target} ({self.task}, {self.source})",
            f"  {self.metric.label} {self.test.score:.4g} on {self.test.n:,} test rows, between {self.test.lower:.4g} "
            f"and {self.test.upper:.4g} at {self.test.level:.0%} ({self.test.method}); a constant scores "
            f"{self.baseline_test:.4g}",
            f"  certificate: {self.certificate}",
        ]
        lines += [f"  {slot.replace('_', ' ')}: {finding.verdict}" for slot, finding in self.findings.items()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The headline, the first candidates and the scores, for notebooks."""
        return report_summary(self.record())

    # ---------------------------------------------------------------------------------------------- as data

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report."""
        rows = max(self.sizes["train"], 1)
        # The report shows the share of missing values, not their number.
        columns = [{**asdict(p), "missing": p.missing / rows} for p in self.profile]
        findings = [{"slot": slot, **finding.to_dict()} for slot, finding in self.findings.items()]
        for found in findings:
            if found["slot"] == "slices" and self.examples:
                found["examples"] = self.examples
        return {
            "title": f"{self.target} from {os.path.basename(self.source) or self.source}",
            "created": self.created,
            "data": {
                "rows": sum(self.sizes.values()),
                "columns": len(self.profile),
                "source": os.path.basename(self.source) or self.source,
                "target": self.target,
                "task": self.task,
                "split": dict(self.sizes),
                "how": self.how,
            },
            "columns": columns,
            "warnings": plain(self.warnings),
            "plan": encoding_plan(self.profile),
            "leaderboard": self.leaderboard,
            "best": self.leaderboard[0]["name"],
            "baseline": self.baseline,
            "metric": {
                "name": self.metric.name,
                "greater_is_better": self.metric.greater_is_better,
                "label": self.metric.label,
            },
            "test": {**asdict(self.test), "baseline_score": self.baseline_test},
            "tests": {name: score_record(name, score) for name, score in self.tests.items()},
            "correlations": self.correlations,
            "groups": self.groups,
            "explanations": self.explanations,
            "prediction_interval": self.interval,
            "restriction": self.restriction,
            "interrupted": self.interrupted,
            "certificate": plain(self.certificate),
            "findings": findings,
            "curves": {"importances": self.importances, "search": self.search_history, **self._learning_curve()},
            "worst_rows": self.examples,
            "skipped": self.skipped,
            "drift": self.drift,
            "environment": environment(self.seed, self.seconds, self.budget),
            "reproduce": self.script,
        }

    def _learning_curve(self) -> dict[str, Any]:
        curve = getattr(self.findings.get("bias_variance"), "curve", None)
        if curve is None:
            return {}
        shown = self.metric.shown
        return {
            "learning_curve": {
                "sizes": [int(n) for n in curve.x],
                "train": [shown(float(v)) for v in curve.mean("train")],
                "train_se": [float(v) for v in curve.error("train")],
                "test": [shown(float(v)) for v in curve.mean("validation")],
                "test_se": [float(v) for v in curve.error("validation")],
            }
        }

    def metrics(self) -> dict[str, Any]:
        """The scores in plain values, as metrics.json has them."""
        best = self.leaderboard[0]
        return {
            "model": best["name"],
            "params": best["params"],
            "task": self.task,
            "target": self.target,
            "metric": self.metric.name,
            "test": asdict(self.test),
            "tests": {name: asdict(score) for name, score in self.tests.items()},
            "test_without_duplicates": None if self.without_duplicates is None else asdict(self.without_duplicates),
            "baseline": {"cross_validated": self.baseline.get("score_mean"), "test": self.baseline_test},
            "cross_validated": {
                "score": best["score_mean"],
                "standard_error": best["score_se"],
                "folds": best["n_folds"],
            },
            "restriction": self.restriction,
            "interrupted": self.interrupted,
            "certificate": plain(self.certificate),
            "warnings": plain(self.warnings),
            "rows": dict(self.sizes),
            "split": self.how,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    # ---------------------------------------------------------------------------------------------- files

    @documented(TABLE_DOCS)
    def save(
        self, directory: str | os.PathLike[str], *, more: Mapping[str, Callable[[Path], None]] | None = None
    ) -> Path:
        """Write model.epi, metrics.json, predictions.csv and train.py into a folder, all of them or none."""
        return write_folder(directory, {**self.files(), **(more or {})})

    def files(self) -> dict[str, Callable[[Path], None]]:
        """The functions that write the files, by name."""
        return {
            "model.epi": lambda path: save(self.model_, path),
            "metrics.json": lambda path: write_text(path, json.dumps(plain(self.metrics()), indent=2) + "\n"),
            "predictions.csv": self._write_predictions,
            "train.py": lambda path: write_text(path, self.script),
        }

    def _write_predictions(self, path: Path) -> None:
        part = self.test_part
        predictions = part.responses["predict"]
        proba = part.responses.get("predict_proba")
        names = (
            [f"p({label})" for label in self.metric.classes]
            if proba is not None and self.metric.classes is not None
            else []
        )
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["row", self.target, "prediction", *names])
            for i in range(len(part.y)):
                numbers = [] if proba is None or not names else [repr(float(p)) for p in proba[i]]
                writer.writerow([int(part.rows[i]), cell(part.y[i]), cell(predictions[i]), *numbers])


def encoding_plan(profile: Sequence[ColumnProfile]) -> list[str]:
    """Encoding of the columns: those that are treated alike on one line."""
    alike: dict[str, list[str]] = {}
    for p in profile:
        alike.setdefault(p.treatment, []).append(p.name)
    who = {done: ", ".join(names) if len(names) <= 4 else f"{len(names)} columns" for done, names in alike.items()}
    return [f"{who[done]}: {done}" for done in alike]


def cell(value: Any) -> Any:
    """A value of a CSV file: floats with all their digits."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(value) if isinstance(value, float) else value


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 atomically."""
    write_atomically(path, [text.encode()])


def environment(seed: int, seconds: float, budget: float) -> dict[str, Any]:
    """Versions and settings that the run depends on."""
    return {
        **current_versions(),
        "pyarrow": pyarrow.__version__,
        "platform": sys.platform,
        "seed": seed,
        "seconds": round(seconds, 2),
        "budget": budget,
    }


def now() -> str:
    """Current time as text."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
