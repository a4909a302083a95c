"""The section on the data: its size, what to beware of, and a line for every column."""

from __future__ import annotations

from typing import Any

from epicycle.report._bars import sparkline
from epicycle.report._markup import Child, Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, text, whole

__all__ = ["data"]

_COLUMNS, _FOLDED, _WARNINGS = 100, 12, 40
_RANK = {"critical": 0, "error": 0, "high": 0, "medium": 1, "warning": 1, "low": 2, "info": 2}


def data(record: dict[str, Any]) -> Html | None:
    """Size, warnings, plan and profile."""
    summary, profiles = mapping(record.get("data")), [mapping(row) for row in items(record.get("columns"))]
    warned = [mapping(entry) for entry in items(record.get("warnings"))]
    parts = [_summary(summary), _warned(warned), _plan(record.get("plan")), _profiles(profiles)]
    said = [part for part in parts if part]
    return joined(said) if said else None


def _summary(summary: dict[str, Any]) -> Html | None:
    facts: list[tuple[str, str]] = []
    for key, name in (("source", "Source"), ("task", "Task"), ("target", "Target")):
        if summary.get(key) is not None:
            facts.append((name, text(summary[key], 160)))
    for key, name in (("rows", "Rows"), ("columns", "Columns")):
        if summary.get(key) is not None:
            facts.append((name, whole(summary[key])))
    split = mapping(summary.get("split"))
    if split:
        facts.append(("Split", ", ".join(f"{text(k, 30)} {whole(v)}" for k, v in list(split.items())[:6])))
    known = {"source", "task", "target", "rows", "columns", "split"}
    for key, value in list(summary.items())[:24]:
        if key not in known and value is not None:
            name = text(key, 40).replace("_", " ")
            facts.append((name[:1].upper() + name[1:], text(value, 120)))
    if not facts:
        return None
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts")


def _severity(entry: dict[str, Any]) -> int:
    return _RANK.get(text(entry.get("severity")).lower(), 1)


def _warned(warned: list[dict[str, Any]]) -> Html | None:
    if not warned:
        return None
    order = sorted(warned, key=_severity)[:_WARNINGS]
    lines = []
    for entry in order:
        grave = ("high", "medium", "low")[_severity(entry)]
        names = [text(name, 40) for name in items(entry.get("columns"))]
        some = ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
        kind = text(entry.get("kind") or "note", 40).replace("_", " ")
        lines.append(
            tag(
                "li",
                tag("span", grave, class_=f"badge {grave}"),
                tag("div", tag("strong", kind[:1].upper() + kind[1:], ". "), text(entry.get("text"), 500),
                    tag("small", some, class_="params") if some else None),
                class_="warned",
            )
        )  # fmt: skip
    return joined(
        tag("h3", "What to beware of"), tag("ul", lines, class_="warnings"), more(len(warned) - len(order), "warnings")
    )


def _plan(plan: Any) -> Html | None:
    if isinstance(plan, str) and plan.strip():
        body = tag("p", text(plan, 2000))
    elif isinstance(plan, list) and plan:
        body = joined(tag("ul", [tag("li", text(step, 400)) for step in plan[:30]]), more(len(plan) - 30, "steps"))
    elif isinstance(plan, dict) and plan:
        facts = list(plan.items())[:30]
        body = tag(
            "dl",
            [
                tag("div", tag("dt", text(key, 40).replace("_", " ").capitalize()), tag("dd", text(value, 400)))
                for key, value in facts
            ],
            class_="facts",
        )
    else:
        return None
    return joined(tag("h3", "What was done"), body)


def _profiles(profiles: list[dict[str, Any]]) -> Html | None:
    if not profiles:
        return None
    # Columns with something to beware of come first where not all can be shown.
    order = sorted(profiles, key=lambda row: not items(row.get("warnings"))) if len(profiles) > _COLUMNS else profiles
    kept = order[:_COLUMNS]
    rows: list[list[Child]] = []
    for row in kept:
        missing = number(row.get("missing"))
        warned = [text(entry, 120) for entry in items(row.get("warnings"))]
        spark = sparkline(mapping(row.get("sketch")), text(row.get("name"), 60))
        rows.append(
            [
                joined(tag("strong", clipped(row.get("name"), 32)), _notes(warned)),
                clipped(row.get("kind"), 24),
                spark or DASH,
                DASH
                if missing is None
                else "0"
                if missing == 0
                else f"{missing:.1%}"
                if missing >= 0.001
                else "< 0.1%",
                whole(row.get("distinct")),
                clipped(row.get("treatment"), 80),
            ]
        )
    heads = ["column", "kind", "distribution", "missing", "distinct", "treatment"]
    note = ", those with warnings first" if len(profiles) > len(kept) else ""
    body = joined(
        table(heads, rows, numeric=(3, 4), label="columns of the data"), more(len(profiles) - len(kept), "columns")
    )
    if len(kept) > _FOLDED:  # what comes after the data matters more than the thirtieth column
        body = tag("details", tag("summary", f"Show {len(kept)} columns"), body)
    return joined(tag("h3", f"Columns{note}"), body)


def _notes(warned: list[str]) -> Html | None:
    return tag("small", "; ".join(warned[:3]), class_="params alert") if warned else None
