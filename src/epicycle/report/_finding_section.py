"""A finding on the page: its verdict, what to try, its notes, and its table."""

from __future__ import annotations

from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import items, mapping, number, shown, text
from epicycle.report._wording import sentence

__all__ = ["advised", "finding_of", "found_table"]

_ROWS, _COLUMNS = 25, 10


def finding_of(record: dict[str, Any], slot: str) -> dict[str, Any]:
    """The first finding of a slot, else an empty one."""
    findings = (mapping(finding) for finding in items(record.get("findings")))
    return next((finding for finding in findings if finding.get("slot") == slot), {})


def advised(finding: dict[str, Any]) -> Html | None:
    """Verdict, steps and notes."""
    parts = []
    if finding.get("verdict"):
        parts.append(tag("p", sentence(text(finding["verdict"], 1000)), class_="verdict"))
    if steps := [text(step, 400) for step in items(finding.get("next_steps"))[:8]]:
        parts.append(tag("p", "What to try:", class_="quiet tight"))
        parts.append(tag("ul", [tag("li", sentence(step)) for step in steps]))
    parts += [
        tag("p", f"Note: {text(note, 400).rstrip('.')}.", class_="quiet") for note in items(finding.get("notes"))[:6]
    ]
    return joined(parts) if parts else None


def found_table(finding: dict[str, Any], *, folded: str = "") -> Html | None:
    """The numbers; behind a line to click on where `folded` names one."""
    columns = {key: items(values) for key, values in list(mapping(finding.get("table")).items())[:_COLUMNS]}
    n = max(map(len, columns.values()), default=0)
    if n == 0:
        return None
    kept = min(n, _ROWS)
    numeric = [
        j for j, values in enumerate(columns.values())
        if any(number(v) is not None for v in values) and not any(isinstance(v, str) for v in values)
    ]  # fmt: skip
    rows = [[_cell(values[i] if i < len(values) else None) for values in columns.values()] for i in range(kept)]
    heads = [text(name, 40).replace("_", " ") for name in columns]
    inner = joined(table(heads, rows, numeric=numeric, label=folded or "numbers", class_="fit"), more(n - kept, "rows"))
    return tag("details", tag("summary", folded), inner) if folded else inner


def _cell(value: Any) -> Html:
    return joined(shown(value)) if number(value) is not None else clipped(value, 80)
