"""Result of training for several targets: a run for each, scores of all together, and the files."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from epicycle.automl._output import TABLE_DOCS, write_folder
from epicycle.automl._training_run import TrainingRun, cell, environment, now, write_text
from epicycle.automl.multioutput._joint_scores import joint_scores
from epicycle.automl.multioutput._multi_output_table_model import MultiOutputTableModel
from epicycle.core._docs import documented
from epicycle.io import save
from epicycle.report._plain import plain

_SCRIPT = '''\
"""Reproduces the models of this folder, bit for bit: python train.py [DATA]"""

import runpy
import sys
from pathlib import Path

import epicycle as ep

#: The folder of each target.
FOLDERS = {{
{folders}}}

if __name__ == "__main__":
    models = {{}}
    for target, folder in FOLDERS.items():
        script = runpy.run_path(str(Path(__file__).parent / folder / "train.py"))
        parts = script["read"](sys.argv[1] if len(sys.argv) > 1 else script["DATA"])
        models[target] = script["model"].fit(parts.train, parts.y_train, sample_weight=parts.weight_train)
        score = models[target].score(parts.test, parts.y_test)
        print(f"{{target}}: score on {{len(parts.y_test)}} test rows: {{score:.4f}}")
    ep.training.MultiOutputTableModel(models, labels={labels!r}).save("reproduced.epi")
'''


@dataclass(repr=False)
class MultiOutputRun:
    """Result of :func:`epicycle.automl.train_targets`.

    Attributes
    ----------
    runs : dict of TrainingRun
        By target.
    source : str
    labels : str or None
        The column of several labels a row whose labels are the targets.
    left_out : list of str
        Labels of too few rows.
    joint : dict
        Scores of all targets together on the test rows, where all are classes (exact match ratio, Hamming loss, and F1
        of labels) or all numbers (mean R2).
    seed : int
    budget, seconds : float
    """

    runs: dict[str, TrainingRun]
    source: str
    labels: str | None = None
    left_out: list[str] = field(default_factory=list)
    seed: int = 0
    budget: float = 0.0
    seconds: float = 0.0
    joint: dict[str, dict[str, Any]] = field(init=False)
    created: str = field(default_factory=now)

    def __post_init__(self) -> None:
        self.joint = joint_scores(self.runs, self.seed)

    @property
    def model_(self) -> MultiOutputTableModel:
        """The models of all targets."""
        return MultiOutputTableModel({name: run.model_ for name, run in self.runs.items()}, self.labels)

    @property
    def folders(self) -> dict[str, str]:
        """The folder of each target: its name in letters, digits, dots and underlines."""
        found: dict[str, str] = {}
        for name in self.runs:
            plain_name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "target"
            taken = {other.lower() for other in found.values()}  # some file systems do not tell case apart
            number, folder = 2, plain_name
            while folder.lower() in taken:
                folder, number = f"{plain_name}-{number}", number + 1
            found[name] = folder
        return found

    def __str__(self) -> str:
        lines = [f"{len(self.runs)} targets of {self.source}"]
        for name, run in self.runs.items():
            best, t = run.leaderboard[0], run.test
            lines.append(
                f"  {name}: {best['method']}, {run.metric.label} {t.score:.4g} on {t.n:,} test rows, between "
                f"{t.lower:.4g} and {t.upper:.4g}; a constant scores {run.baseline_test:.4g}"
            )
        lines += [f"  {self.joint_words(name)}" for name in self.joint]
        return "\n".join(lines)

    __repr__ = __str__

    def joint_words(self, name: str) -> str:
        """A score of all targets in words."""
        s = self.joint[name]
        return f"all targets: {s['label']} {s['score']:.4g}, between {s['lower']:.4g} and {s['upper']:.4g}"

    def record(self) -> dict[str, Any]:
        """The overview in plain values, the input of a report."""
        folders, first = self.folders, next(iter(self.runs.values()))
        rows = []
        for name, run in self.runs.items():
            rows.append(
                {
                    "name": name,
                    "task": run.task,
                    "model": run.leaderboard[0]["method"],
                    "metric": run.metric.label,
                    **asdict(run.test),
                    "baseline_score": run.baseline_test,
                    "greater_is_better": run.metric.greater_is_better,
                    "page": f"{folders[name]}/report.html",
                    "warnings": len(run.warnings),
                }
            )
        what = f"Labels of {self.labels}" if self.labels is not None else f"{len(self.runs)} targets"
        return {
            "title": f"{what} from {os.path.basename(self.source) or self.source}",
            "created": self.created,
            "data": {
                "rows": sum(first.sizes.values()),
                "columns": len(first.profile),
                "source": os.path.basename(self.source) or self.source,
                "split": dict(first.sizes),
                "how": first.how,
            },
            "targets": {"runs": rows, "joint": self.joint, "labels": self.labels, "left_out": self.left_out},
            "environment": environment(self.seed, self.seconds, self.budget),
            "reproduce": self.script,
        }

    @property
    def script(self) -> str:
        """The text of train.py."""
        folders = "".join(f"    {name!r}: {folder!r},\n" for name, folder in self.folders.items())
        return _SCRIPT.format(folders=folders, labels=self.labels)

    def metrics(self) -> dict[str, Any]:
        """The scores in plain values, as metrics.json has them."""
        return {
            "targets": {name: run.metrics() for name, run in self.runs.items()},
            "joint": self.joint,
            "labels": self.labels,
            "labels_left_out": self.left_out,
            "folders": self.folders,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    @documented(TABLE_DOCS)
    def save(
        self, directory: str | os.PathLike[str], *, more: Mapping[str, Callable[[Path], None]] | None = None
    ) -> Path:
        """Write the files of all targets together, and a folder for each, all of them or none.

        model.epi holds the models of all targets; predictions.csv has a row for each test row, with two columns for
        each target. The folder of a target holds what :meth:`TrainingRun.save <epicycle.TrainingRun.save>` writes.
        """
        files: dict[str, Callable[[Path], None]] = {
            "model.epi": lambda path: save(self.model_, path),
            "metrics.json": lambda path: write_text(path, json.dumps(plain(self.metrics()), indent=2) + "\n"),
            "predictions.csv": self._write_predictions,
            "train.py": lambda path: write_text(path, self.script),
        }
        for name, folder in self.folders.items():
            for file, write in self.runs[name].files().items():
                files[f"{folder}/{file}"] = write
        return write_folder(directory, {**files, **(more or {})})

    def _write_predictions(self, path: Path) -> None:
        parts = {name: run.test_part for name, run in self.runs.items()}
        first = next(iter(parts.values()))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["row", *(title for name in parts for title in (name, f"{name}: prediction"))])
            for i in range(len(first.y)):
                pairs = [value for part in parts.values() for value in (part.y[i], part.responses["predict"][i])]
                writer.writerow([int(first.rows[i]), *map(cell, pairs)])
