"""Result of generating a table: the rows, the generator, and what the rows are worth against the real ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._table_run import ProfiledTableRun
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.automl.synthesis._table_generator import TableGenerator
from epicycle.io import save
from epicycle.report._plain import plain

#: Pairs that a report lists, and those that it draws.
_LISTED, _DRAWN = 12, 400


@dataclass(repr=False)
class GenerationRun(ProfiledTableRun):
    """Result of :func:`epicycle.generate_table`; `save` writes synthetic.csv and model.epi.

    Attributes
    ----------
    table : pyarrow.Table
        The rows that were drawn.
    model : TableGenerator
        Fitted to four in five of the real rows; ``model.sample(n, random_state=seed)`` draws more.
    candidates : list of dict
        The networks that were compared, the chosen one first: how well boosting tells their rows from real ones (area
        under the ROC curve; 0.5 is chance).
    marginals : list of dict
        Of each column the distance between real and drawn rows (total variation of categories, Kolmogorov-Smirnov of
        numbers), and as `noise` that between the rows of the fit and real rows that were held out.
    pairs : list of dict
        Association of each pair of columns in real and in drawn rows, the largest difference first.
    utility : dict, or None
        Scores on held-out real rows of boosting learnt from drawn rows, and of the same learnt from real ones.
    privacy : dict
        Rows that equal a row of the fit, and distances to the nearest of them, against those of held-out real rows.
    left_out : dict of str
        Columns that were not drawn, and why.
    """

    table: pa.Table
    model: TableGenerator
    candidates: list[dict[str, Any]]
    marginals: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    utility: dict[str, Any] | None
    no_utility: str
    privacy: dict[str, Any]
    left_out: dict[str, str]
    split: dict[str, int]
    profile: list[ColumnProfile]
    warnings: list[DataIssue]
    source: str
    script: str
    seed: int

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        words = f"{self.table.num_rows:,} rows were drawn by a {self.candidates[0]['title']}"
        worst = max(self.marginals, key=lambda row: row["distance"], default=None)
        if worst is not None:
            words += f"; columns differ from the real ones by {worst['distance']:.3f} at most ({worst['name']})"
        if self.utility is not None:
            u = self.utility
            words += (
                f"; {u['target']} is predicted with {u['metric']} {u['drawn']['score']:.3f} after learning from drawn "
                f"rows, and {u['real']['score']:.3f} after learning from real ones"
            )
        return words

    def __str__(self) -> str:
        return "\n".join([f"{self.source}: {self.verdict}", *(f"  {issue.text}" for issue in self.warnings)])

    def metrics(self) -> dict[str, Any]:
        """The numbers in plain values; the same for the same seed."""
        differences = [pair["difference"] for pair in self.pairs]
        noise = [pair["noise"] for pair in self.pairs]
        found = {
            "verdict": self.verdict,
            "rows": self.table.num_rows,
            "candidates": self.candidates,
            "marginals": [{key: value for key, value in row.items() if key != "sketch"} for row in self.marginals],
            "pairs": {
                "mean": float(np.mean(differences)) if differences else None,
                "noise": float(np.mean(noise)) if noise else None,
                "worst": self.pairs[:_LISTED],
            },
            "utility": self.utility,
            "no_utility": self.no_utility,
            "privacy": {key: value for key, value in self.privacy.items() if key != "quantiles"},
            "left_out": self.left_out,
            "split": self.split,
            "seed": self.seed,
        }
        return dict(plain(found))

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report; without times, so that it repeats."""
        step = max(1, len(self.pairs) // _DRAWN)
        drawn = plain(
            {
                "marginals": self.marginals,
                "points": [[pair["real"], pair["drawn"], " and ".join(pair["names"])] for pair in self.pairs[::step]],
                "quantiles": self.privacy.get("quantiles", {}),
            }
        )
        content = {"synthesis": {**self.metrics(), **drawn}}
        name, rows = os.path.basename(self.source) or self.source, sum(self.split.values())
        return self._record(f"Synthetic rows like {name}", rows, content, task="generation", source=name)

    def _files(self) -> dict[str, Callable[[Path], None]]:
        return {
            "model.epi": lambda path: save(self.model, path),
            "synthetic.csv": lambda path: pa.csv.write_csv(self.table, path),
        }
