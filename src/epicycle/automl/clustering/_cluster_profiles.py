"""Clusters in words: in which columns, and how far, the rows of a cluster differ from all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._columns import as_numbers, as_text, base_kind, form_of
from epicycle.data._categories import distinct_values
from epicycle.report._plain import shown

#: Differences in standard deviations that are worth a word, and that are called "very".
_TOLD, _VERY = 0.4, 1.2
#: Share of the rows of a cluster that a level has at least to be named.
_LEAST_SHARE = 0.3
_MOST_WORDS = 4


def cluster_profiles(
    table: pa.Table, kinds: Mapping[str, str], labels: np.ndarray, silhouettes: np.ndarray | None
) -> list[dict[str, Any]]:
    """The clusters from the largest to the smallest: rows, share, mean silhouette, and what is special about them."""
    numbers = {
        name: as_numbers(table[name], form_of(kind)) for name, kind in kinds.items() if base_kind(kind) == "number"
    }
    levels = {name: distinct_values(as_text(table[name])) for name, kind in kinds.items() if kind == "category"}
    found, counts = np.unique(labels, return_counts=True)
    profiles = []
    for label, count in sorted(zip(found.tolist(), counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0])):
        inside = labels == label
        traits = [t for name, values in numbers.items() if (t := _number_trait(name, values, inside)) is not None]
        traits += [t for name, (names, codes) in levels.items() for t in _level_traits(name, names, codes, inside)]
        traits.sort(key=lambda trait: -trait["effect"])
        told = traits[:_MOST_WORDS]
        profiles.append(
            {
                "cluster": int(label),
                "rows": int(count),
                "share": count / len(labels),
                "silhouette": None if silhouettes is None or label < 0 else float(silhouettes[inside].mean()),
                "summary": ", ".join(t["word"] for t in told) or _nothing_special(int(label)),
                "details": "; ".join(t["detail"] for t in told),
                "traits": traits[:12],
            }
        )
    return profiles


def _nothing_special(label: int) -> str:
    return "rows that belong to no cluster" if label < 0 else "near the average in all columns"


def _number_trait(name: str, values: np.ndarray, inside: np.ndarray) -> dict[str, Any] | None:
    """Distance of the mean of a column in the cluster from that of all rows."""
    known = ~np.isnan(values)
    if not (known & inside).any():
        return None
    overall, here = float(values[known].mean()), float(values[known & inside].mean())
    spread = float(values[known].std())
    effect = abs(here - overall) / spread if spread > 0 else 0.0
    if effect < _TOLD:
        return None
    word = ("very " if effect >= _VERY else "") + ("high " if here > overall else "low ") + name
    detail = f"{name} {shown(here, 3)} against {shown(overall, 3)} overall"
    return {"column": name, "effect": effect, "word": word, "detail": detail, "here": here, "overall": overall}


def _level_traits(name: str, names: list[Any], codes: np.ndarray, inside: np.ndarray) -> list[dict[str, Any]]:
    """The level of a category that is most over-represented in the cluster."""
    known = codes >= 0
    if not (known & inside).any():
        return []
    overall = np.bincount(codes[known], minlength=len(names)) / known.sum()
    here = np.bincount(codes[known & inside], minlength=len(names)) / (known & inside).sum()
    effects = np.where(here >= _LEAST_SHARE, here - overall, 0.0) / np.sqrt(np.maximum(overall * (1 - overall), 1e-12))
    at = int(np.argmax(effects))
    if effects[at] < _TOLD:
        return []
    word = f"{name} {names[at]}" if here[at] >= 0.9 else f"{name} mostly {names[at]}" if here[at] > 0.5 else ""
    detail = f"{name} {names[at]} {here[at]:.0%} against {overall[at]:.0%} overall"
    return [
        {
            "column": name,
            "effect": float(effects[at]),
            "word": word or f"more often {name} {names[at]}",
            "detail": detail,
            "here": float(here[at]),
            "overall": float(overall[at]),
        }
    ]
