"""Overlap of the arms: where both treatments have a chance, and where they have not.

Crump, Hotz, Imbens and Mitnik (2009) drop the rows with e outside [a, 1 - a], where a is the smallest number with

    1 / (a (1 - a)) <= 2 E[ 1 / (e (1 - e)) | 1 / (e (1 - e)) <= 1 / (a (1 - a)) ],

which gives the average over a subpopulation that is estimated with the smallest variance; of several such numbers the
one with the least. The region that is left out
is described by the covariates: the cells of a shallow tree in which most rows have no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.causal.effects._study import Study
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, labels_clear
from epicycle.tree.cart._regressor import DecisionTreeRegressor

#: Bins of the figure of the scores.
_BINS = 40
#: About as many rows, evenly taken, show the tree where a region is.
_ROWS_OF_TREE = 20_000


def crump_threshold(e: np.ndarray, w: np.ndarray) -> float:
    """The a of the optimal trimming rule."""
    with np.errstate(divide="ignore"):
        k = 1 / (e * (1 - e))
    finite = np.isfinite(k)
    if not finite.any():
        return 0.5
    order = np.argsort(k[finite])
    k, w = k[finite][order], w[finite][order]
    total = np.cumsum(w)
    mean = np.cumsum(k * w) / total
    # The condition can hold in several places where propensities come in clusters: that of the least variance E[k] / P.
    ends = np.append(k[1:] != k[:-1], True)
    last = int(np.argmin(np.where(ends, mean / total, np.inf)))
    if last == len(k) - 1 and finite.all():
        return 0.0
    bound = max(2 * float(mean[last]), float(k[last]))
    return 0.5 - float(np.sqrt(max(0.25 - 1 / bound, 0.0)))


def outside(e: np.ndarray, a: float) -> np.ndarray:
    """Rows with a propensity outside [a, 1 - a]."""
    return (e < a) | (e > 1 - a)


def region_without_overlap(study: Study, far: np.ndarray) -> str:
    """The rows `far` in words: the cells of a tree of depth 2 in which they are the majority, or the worst."""
    if not far.any() or far.all() or study.X.shape[1] == 0:
        return ""
    X = study.dense()
    some = slice(None, None, max(1, len(X) // _ROWS_OF_TREE))
    tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=2)
    tree.fit(X[some], far[some].astype(np.float64), sample_weight=study.w[some])
    rules: dict[int, str] = {}
    _walk(tree.tree_, 0, [], study.names, rules)
    leaf = tree.apply(X)
    mass = np.bincount(leaf, study.w)
    share = np.bincount(leaf, study.w * far) / np.where(mass > 0, mass, 1.0)
    worst = [i for i in rules if share[i] > 0.5] or [max(rules, key=lambda i: share[i])]
    return "; ".join(f"{rules[i] or 'all rows'} ({share[i]:.0%} of {mass[i]:g} rows)" for i in worst)


def _walk(nodes: Any, i: int, rule: list[str], names: tuple[str, ...], rules: dict[int, str]) -> None:
    left, right = int(nodes.children_left[i]), int(nodes.children_right[i])
    if left < 0:
        rules[i] = " and ".join(rule)
        return
    name, cut = names[int(nodes.feature[i])], float(nodes.threshold[i])
    _walk(nodes, left, [*rule, f"{name} <= {cut:.4g}"], names, rules)
    _walk(nodes, right, [*rule, f"{name} > {cut:.4g}"], names, rules)


def overlap_facts(study: Study, e: np.ndarray, a: float) -> dict[str, Any]:
    """Content of `overlap_`: threshold, share outside, extremes, histogram of each arm, and the region in words."""
    far = outside(e, a)
    edges = np.linspace(0, 1, _BINS + 1)
    histograms = [np.histogram(e[study.t == arm], bins=edges, weights=study.w[study.t == arm])[0] for arm in (0, 1)]
    return {
        "threshold": a,
        "outside": float(study.w @ far) / study.size,
        "lowest": float(e.min()),
        "highest": float(e.max()),
        "region": region_without_overlap(study, far),
        "edges": edges,
        "control": histograms[0],
        "treated": histograms[1],
    }


def draw_overlap(ax: Axes | None, facts: Mapping[str, Any], levels: tuple[Any, ...]) -> Axes:
    """The propensity scores of the treated upwards and of the controls downwards, with the trimming bounds."""
    ax = axes_of(ax)
    edges = facts["edges"]
    width = np.diff(edges)
    for name, sign, colour, level in (("treated", 1, "orange", levels[1]), ("control", -1, "blue", levels[0])):
        density = facts[name] / max(facts[name].sum(), 1e-300) / width
        ax.bar(edges[:-1], sign * density, width, align="edge", color=COLOURS[colour], label=f"{name} ({level})", lw=0)
    a = facts["threshold"]
    for x in (a, 1 - a) if a > 0 else ():
        ax.axvline(x, color=ink(ax, 0.6), lw=1, ls="--")
    ax.axhline(0, color=ink(ax), lw=0.8)
    ax.set_yticks([])
    ax.set_xlim(0, 1)
    ax.set_xlabel("propensity score")
    ax.set_ylabel("density")
    return labels_clear(ax)
