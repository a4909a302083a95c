"""Result of the analysis of an effect in a table: the conclusion, its evidence, and the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epicycle.automl._table_run import ProfiledTableRun
from epicycle.automl._training_run import write_text
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.report._plain import plain

#: The share of rows without a counterpart from which on the conclusion says so itself.
_MOSTLY_EXTRAPOLATED = 0.2


@dataclass(repr=False)
class EffectRun(ProfiledTableRun):
    """Result of :func:`epicycle.effect_table`; `save` writes effect.json and effect.py.

    Attributes
    ----------
    effect, standard_error : float
        The conclusion, by the first of the `estimates`.
    interval : tuple of float
        95% confidence.
    method : str
    estimates : list of dict
        All methods side by side: name, words, effect, standard_error, lower, upper.
    identification : dict
        Kind ("assumed", "adjustment", "formula" or "instrument"), the columns, and the reasons in words.
    overlap : dict
        Propensity scores of both arms, and the share of rows with hardly any like them in the other arm.
    balance : list of dict
        Standardised differences of the covariates before and after weighting.
    sensitivity : dict
        E-values and robustness values, with covariates for comparison.
    refutations : list of dict
        Name, verdict and whether it passed.
    instrument : dict
        Strength of the instrument, where one is used.
    contrasts : list of dict
        Of a treatment of several values each against the control: level, rows, effect, standard_error, and ends of
        intervals that hold for all at once with 95% confidence.
    doubts : list of str
        What would have to be true for the conclusion to be wrong.
    failed : list of str
        Methods that could not be fitted, and why.
    """

    treatment: str
    outcome: str
    levels: tuple[str, str]
    scale: str
    effect: float
    standard_error: float
    interval: tuple[float, float]
    method: str
    estimates: list[dict[str, Any]]
    identification: dict[str, Any]
    overlap: dict[str, Any]
    balance: list[dict[str, Any]]
    sensitivity: dict[str, Any]
    refutations: list[dict[str, Any]]
    rows: int
    treated: int
    profile: list[ColumnProfile]
    warnings: list[DataIssue]
    failed: list[str]
    source: str
    script: str
    seed: int
    instrument: dict[str, Any] = field(default_factory=dict)
    contrasts: list[dict[str, Any]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.interval[0] > 0 or self.interval[1] < 0

    @property
    def verdict(self) -> str:
        """The conclusion in one sentence."""
        low, high = self.interval
        span = f"95% interval {low:.4g} to {high:.4g}"
        if not self.is_clear:
            return f"no effect of {self.treatment} on {self.outcome} can be told from noise: {self.effect:.4g}, {span}"
        verb = "raises" if self.effect > 0 else "lowers"
        words = f"{self.treatment} = {self.levels[1]} {verb} {self.scale} by {abs(self.effect):.4g} on average ({span})"
        outside = self.overlap.get("outside", 0.0)
        if outside > _MOSTLY_EXTRAPOLATED:
            who = f"{outside:.0%} of the rows, which have hardly any like them in the other arm"
            words += f", but for {who}, by extrapolation"
        return words

    def estimate(self, name: str) -> dict[str, Any]:
        """One of the estimates.

        Parameters
        ----------
        name : str
            Its name.
        """
        return next(row for row in self.estimates if row["name"] == name)

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows, {self.treated:,} treated ({self.source}): {self.verdict}"]
        lines += [
            f"  {row['name']:<16} {row['effect']:>10.4g}   {row['lower']:.4g} to {row['upper']:.4g}"
            for row in self.estimates
        ]
        lines += [f"  {line}" for line in self.contrast_lines()]
        lines += ["wrong if:", *(f"  - {doubt}" for doubt in self.doubts)]
        return "\n".join(lines)

    def contrast_lines(self) -> list[str]:
        """The contrasts in words, one a line."""
        head = f"each value of {self.treatment} against {self.levels[0]}, intervals for all at once:"
        lines = [
            f"{row['level']:<16} {row['effect']:>10.4g}   {row['lower']:.4g} to {row['upper']:.4g}"
            if "effect" in row
            else f"{row['level']:<16} {row['failed']}"
            for row in self.contrasts
        ]
        return [head, *lines] if lines else []

    def metrics(self) -> dict[str, Any]:
        """The numbers in plain values, as effect.json has them; the same for the same seed."""
        names = (
            *("treatment", "outcome", "levels", "scale", "effect", "standard_error", "interval", "method", "verdict"),
            *("estimates", "identification", "overlap", "balance", "sensitivity", "refutations", "instrument"),
            "contrasts",
            *("doubts", "failed", "rows", "treated", "seed"),
        )
        return dict(plain({name: getattr(self, name) for name in names} | {"is_clear": self.is_clear}))

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report; without times, so that it repeats."""
        title = f"Effect of {self.treatment} on {self.outcome}"
        return self._record(title, self.rows, {"effect": self.metrics()}, target=self.outcome, task="effect")

    def _files(self) -> dict[str, Callable[[Path], None]]:
        return {
            "effect.json": lambda path: write_text(path, json.dumps(self.metrics(), indent=2) + "\n"),
            "effect.py": lambda path: write_text(path, self.script),
        }
