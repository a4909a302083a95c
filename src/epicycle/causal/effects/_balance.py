"""Balance of covariates between the arms: standardised differences, variance ratios, effective sample sizes.

The standardised mean difference divides by sqrt((s1^2 + s0^2) / 2) of the rows as they came, also after weighting, so
that the two can be compared; a variance ratio is s1^2 / s0^2. Below 0.1, and between 0.5 and 2, covariates are commonly
called balanced (Austin 2009). The effective size of weights v is (sum v)^2 / sum v^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.causal.effects._study import Study
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, labels_clear, short
from epicycle.stats._summary import Summary

#: Standardised differences that are commonly called balanced.
BALANCED = 0.1


def balance_columns(study: Study, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """Standardised differences and variance ratios of the covariates, as they came and under `weights`."""
    X = study.dense()
    (m0, v0), (m1, v1) = (_moments(X[study.t == a], study.w[study.t == a]) for a in (0.0, 1.0))
    scale = np.sqrt((v0 + v1) / 2)
    columns = {"smd_before": _ratio(m1 - m0, scale), "variance_ratio_before": _ratio(v1, v0)}
    if weights is not None:
        both = [_moments(X[study.t == a], (study.w * weights)[study.t == a]) for a in (0.0, 1.0)]
        columns["smd_after"] = _ratio(both[1][0] - both[0][0], scale)
        columns["variance_ratio_after"] = _ratio(both[1][1], both[0][1])
    return columns


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below; where both are zero nothing differs, and where only the second is the ratio is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0) & (below == 0), 0.0, above / below)


def _moments(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = float(w.sum())
    mean = w @ X / total
    spread = w @ (X - mean) ** 2 / total
    # Rounding leaves a constant column a spread of its own size times 1e-16, squared.
    spread[spread <= 1e-24 * np.maximum(mean**2, np.finfo(float).tiny)] = 0.0
    return mean, spread


def effective_sizes(study: Study, weights: np.ndarray | None) -> dict[str, float]:
    """Rows and effective rows of each arm."""
    v = np.ones_like(study.w) if weights is None else weights
    sizes = {}
    for arm, name in ((0.0, "control"), (1.0, "treated")):
        w, u = study.w[study.t == arm], v[study.t == arm]
        square = float(w @ u**2)
        sizes[f"n_{name}"] = float(w.sum())
        sizes[f"ess_{name}"] = float(w @ u) ** 2 / square if square > 0 else 0.0
    return sizes


def balance_table(names: list[str], columns: Mapping[str, np.ndarray], sizes: Mapping[str, float]) -> Summary:
    """The balance as a table."""
    order = ("smd_before", "smd_after", "variance_ratio_before", "variance_ratio_after")
    titles = ("smd", "smd after", "var. ratio", "ratio after")
    shown = {title: np.asarray(columns[key]) for key, title in zip(order, titles, strict=True) if key in columns}
    facts = {name.replace("_", " "): value for name, value in sizes.items()}
    return Summary("Balance of the covariates", tuple(names), shown, facts)


def draw_balance(ax: Axes | None, names: list[str], columns: Mapping[str, Any]) -> Axes:
    """A love plot: absolute standardised differences of the covariates, before and after, the largest on top."""
    ax = axes_of(ax)
    before = np.abs(columns["smd_before"])
    order = np.argsort(before)
    height = np.arange(len(order))
    if "smd_after" in columns:
        after = np.abs(columns["smd_after"])[order]
        ax.hlines(height, before[order], after, color=ink(ax, 0.25), lw=1, zorder=1)
    ax.plot(before[order], height, "o", mfc="none", color=COLOURS["orange"], label="before", zorder=2, clip_on=False)
    if "smd_after" in columns:
        ax.plot(after, height, "o", color=COLOURS["blue"], label="after", zorder=3, clip_on=False)
    ax.axvline(BALANCED, color=ink(ax, 0.5), lw=1, ls="--")
    ax.set_yticks(height, [short(names[j]) for j in order])
    ax.set_xlim(left=0)
    ax.set_xlabel("absolute standardised mean difference")
    ax.grid(visible=False, axis="y")
    return labels_clear(ax)
