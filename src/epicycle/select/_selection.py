"""Selection: the result of a comparison of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, short, styled
from epicycle.report._finding import Finding
from epicycle.select._scorers import TestScore


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Selection(Finding):
    """Result of a comparison of models by scores on rows that they were not fitted to.

    Attributes
    ----------
    best : str
        Name of the model with the best score.
    model_ : estimator
        The best model, fitted to all rows; None where ``refit=False``.
    score, std_error : float
        Of the best model; larger scores are better. The best of many scores is optimistic: `test`, or `nested`, gives
        an unbiased one.
    metric : str
        Name of the score.
    best_params : dict
        The point of the grid, where the best model had one.
    scores : dict
        The score of every model on every fold; one number where there are no folds.
    test : TestScore or None
        The score of `model_` on the separate test rows, with its interval.
    procedure_score, procedure_std_error : float
        With `nested`, the score of choosing and fitting together, on rows that were used for neither; otherwise NaN.
    chosen : tuple of str
        With `nested`, the model chosen in each outer fold.
    failures : dict
        Errors of models that could not be fitted, by name.
    verdict : str
        The result in words.
    table : DataFrame
        The models from best to worst: score, standard error, how far behind the best, the standard error of that
        difference, whether that is not significant, seconds of all its fits.
    """

    best: str
    model_: Any
    score: float
    std_error: float
    metric: str
    best_params: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)
    test: TestScore | None = None
    procedure_score: float = np.nan
    procedure_std_error: float = np.nan
    chosen: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the scores with two standard errors, the best on top, folds as faint points."""
        names = [str(name) for name in self.columns["model"]][:30]
        ax = axes_of(ax, (6.4, 1.2 + 0.32 * len(names)))
        y = np.arange(len(names))[::-1]
        means = np.asarray(self.columns["score"], dtype=np.float64)[: len(names)]
        errors = np.nan_to_num(np.asarray(self.columns["std_error"], dtype=np.float64)[: len(names)])
        for level, name in zip(y, names, strict=True):
            folds = np.atleast_1d(self.scores.get(name, np.zeros(0)))
            if len(folds) > 1:
                ax.plot(folds, np.full(len(folds), level), "|", color=COLOURS["grey"], alpha=0.5, ms=8)
            colour = COLOURS["vermilion" if name == self.best else "blue"]
            at = len(names) - 1 - level
            ax.errorbar(means[at], level, xerr=2 * errors[at], fmt="o", color=colour, capsize=3, ms=6)
        if np.isfinite(self.procedure_score):
            ax.axvline(self.procedure_score, color=COLOURS["green"], ls="--", label="choosing and fitting (nested)")
        if self.test is not None:
            ax.axvline(self.test.score, color=ink(ax), ls=":", label="best model on the test rows")
        ax.set_yticks(y, [short(name) for name in names])
        ax.set_ylim(-0.7, len(names) - 0.3)
        ax.set(xlabel=f"{self.metric.replace('_', ' ')} (bars: two standard errors)")
        ax.locator_params(axis="x", nbins=6)
        ax.grid(visible=False, axis="y")
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14 + 0.6 / (2 + len(names))), ncols=2, fontsize=8)
        return ax
