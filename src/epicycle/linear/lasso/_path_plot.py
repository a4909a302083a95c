"""Drawings of the coefficients along a path of penalties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._plot_style import CYCLE, Axes, axes_of, ink, styled

#: Horizontal axes of a drawn path.
Against = Literal["alpha", "norm", "fraction"]
AXES = ("alpha", "norm", "fraction")
#: Line styles, for features beyond the number of colours.
STYLES = ("-", "--", "-.", ":")

PATH_PLOT_DOCS: Mapping[str, str] = {
    "against": 'against : {"alpha", "norm", "fraction"}, default={default}\n'
    "    The horizontal axis: alpha on a log scale, decreasing; the L1 norm of the coefficients; or that norm as a\n"
    "    share of its largest value.",
    "target": "target : int, default={default}\n    Which of several targets.",
    "labels": "labels : int, default={default}\n"
    "    How many of the largest coefficients are named at the end of the path.",
}


@styled
def draw_path(
    alphas: np.ndarray,
    coefs: np.ndarray,
    against: Against,
    *,
    names: Sequence[str] | None,
    labels: int,
    ax: Axes | None,
    piecewise_linear: bool = False,
) -> Axes:
    """Coefficients, of shape (n_features, n_points), against decreasing alphas, their L1 norm, or its share.

    Of a path that is linear in alpha between its points, these are marked, and the lines between them are true also on
    a log scale.
    """
    if against not in AXES:
        raise ParameterError(f"against={against!r}; expected 'alpha', 'norm' or 'fraction'")
    ax = axes_of(ax, (7, 4.2))
    active = np.flatnonzero(coefs.any(axis=1))
    breaks = np.empty(0)
    if against == "alpha":
        if piecewise_linear and len(alphas) > 1:
            breaks = alphas[alphas > 0]
            alphas, coefs = _between(alphas, coefs)
        x = alphas
    else:
        x = np.abs(coefs).sum(axis=0)
        if against == "fraction" and x.max(initial=0.0) > 0:
            x = x / x.max()
        breaks = x if piecewise_linear else breaks
    for at in breaks:
        ax.axvline(at, color=ink(ax, 0.12), lw=0.8, zorder=0)
    lines = [
        # The same feature looks the same in every drawing.
        ax.plot(x, coefs[j], lw=1.4, color=CYCLE[j % len(CYCLE)], ls=STYLES[j // len(CYCLE) % len(STYLES)])[0]
        for j in active
    ]
    ax.axhline(0, color=ink(ax, 0.4), lw=0.8)
    if against == "alpha":
        ax.set_xscale("log")
        ax.invert_xaxis()
    ax.set_xlabel(
        {"alpha": r"$\alpha$ (decreasing)", "norm": r"$\|w\|_1$", "fraction": r"$\|w\|_1 \,/\, \max \|w\|_1$"}[against]
    )
    ax.set_ylabel("coefficient")
    if piecewise_linear:
        ax.grid(visible=False, axis="x")
    _name_lines(ax, lines, active, coefs, x, names, labels)
    return ax


def _between(alphas: np.ndarray, coefs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """More points on every piece; where alpha ends at zero, the last one is drawn over a factor of ten."""
    grid = [np.geomspace(a, b if b > 0 else a / 10, 12) for a, b in pairwise(alphas) if a > b]
    fine = np.unique(np.concatenate([alphas[:1], *grid]))
    values = np.array([np.interp(fine, alphas[::-1], row[::-1]) for row in coefs])
    return fine[::-1], values[:, ::-1]


def _name_lines(
    ax: Axes,
    lines: Sequence[Any],
    active: np.ndarray,
    coefs: np.ndarray,
    x: np.ndarray,
    names: Sequence[str] | None,
    labels: int,
) -> None:
    """Names at the right end, moved apart where they would overlap."""
    last = coefs[active, -1]
    shown = np.argsort(-np.abs(last), kind="stable")[:labels]
    shown = shown[np.argsort(last[shown], kind="stable")]
    low, high = ax.get_ylim()
    gap, height = (high - low) / 22, -np.inf
    for i in shown:
        j = int(active[i])
        height = max(float(last[i]), height + gap)
        ax.annotate(
            str(j) if names is None else names[j],
            (x[-1], float(last[i])),
            xytext=(1.01, height),
            textcoords=ax.get_yaxis_transform(),
            color=lines[i].get_color(),
            fontsize=8,
            va="center",
            annotation_clip=False,
        )
