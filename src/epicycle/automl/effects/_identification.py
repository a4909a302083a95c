"""Identification of an effect: columns to adjust for, another formula of the graph, or an instrument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epicycle.core._exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from epicycle.causal import CausalGraph


@dataclass(frozen=True)
class Identification:
    """The columns to adjust for, the graph that has another formula, or an instrument, and why."""

    kind: str  # "assumed", "adjustment", "formula" or "instrument"
    covariates: tuple[str, ...]
    instrument: str | None
    words: tuple[str, ...]
    graph: str | None
    diagram: Any = None  # the graph itself, for a formula


def identification_of(
    graph: CausalGraph | None, treatment: str, outcome: str, columns: Sequence[str], drop: tuple[str, ...]
) -> Identification:
    """By the graph, or by assumption where there is none."""
    others = tuple(c for c in columns if c not in (treatment, outcome, *drop))
    if graph is None:
        words: tuple[str, ...] = (
            "No graph was given: all other columns are adjusted for. This is right only if each of them was fixed "
            "before the treatment and together they hold everything that moved both treatment and outcome.",
        )
        return Identification("assumed", others, None, words, None)
    for node in (treatment, outcome):
        if node not in graph.nodes:
            raise DataError(f"graph: has no node {node!r}; expected the treatment and the outcome among its nodes")
    hidden = [node for node in graph.nodes if node not in columns or node in drop]
    if hidden:
        graph = type(graph)(
            [*graph.directed, *((a, "<->", b) for a, b in graph.bidirected)],
            nodes=graph.nodes,
            latent={*graph.latent, *hidden},
        )
    text = graph.to_text()
    if outcome not in graph.descendants([treatment]):
        raise DataError(f"graph: has no path of arrows from {treatment!r} to {outcome!r}, so that there is no effect")
    try:
        sets, best = graph.adjustment_sets(treatment, outcome, "optimal"), " (the set of least variance)"
    except ParameterError:  # it has nodes that are not observed
        sets, best = [], ""
    if not sets:
        sets, best = graph.adjustment_sets(treatment, outcome), ""
    seen = f" Not observed: {', '.join(hidden)}." if hidden else ""
    if sets:
        chosen = tuple(c for c in columns if c in sets[0])
        named = ", ".join(chosen) if chosen else "nothing"
        minimal = graph.adjustment_sets(treatment, outcome)[:3]
        ways = "; ".join("{" + ", ".join(sorted(s)) + "}" for s in minimal)
        words = (
            f"By the graph, adjusting for {named} blocks every path between {treatment} and {outcome} that is not "
            f"causal{best}.{seen}",
            f"Smallest sets that would do: {ways}." if minimal else "",
            "This rests on the arrows that the graph does not have; the data cannot prove that they are missing.",
        )
        return Identification("adjustment", chosen, None, tuple(w for w in words if w), text)
    from epicycle.causal import identify

    formula = identify(graph, treatment, outcome)
    if formula.identifiable:
        words = (
            f"By the graph no set of columns blocks all other paths between {treatment} and {outcome}, but the effect "
            f"has a formula: {formula.formula}.{seen}",
            "This rests on the arrows that the graph does not have; the data cannot prove that they are missing.",
        )
        used = {v for v in formula.formula_of().variables if v not in (treatment, outcome)}
        return Identification("formula", tuple(c for c in columns if c in used), None, words, text, graph)
    for found in graph.instruments(treatment, outcome):
        if found.node in columns and found.given <= set(columns):
            words = (
                f"By the graph no set of columns blocks all other paths between {treatment} and {outcome}.{seen}",
                f"{found.node} is an instrument: it moves {treatment} and reaches {outcome} through it alone"
                + (f", given {', '.join(sorted(found.given))}." if found.given else "."),
                "The effect is that on those whose treatment it changes, if it changes nobody's the other way.",
            )
            return Identification("instrument", tuple(c for c in columns if c in found.given), found.node, words, text)
    paths = graph.open_paths(treatment, outcome)
    shown = next((str(path) for path in paths if not path.causal), "")
    raise DataError(
        f"graph: no set of columns, no formula and no instrument identifies the effect of {treatment!r} on "
        f"{outcome!r}; the path {shown} cannot be blocked.{seen} epicycle.causal.identify has the proof"
    )
