"""HTML elements; text is escaped unless it is of the type `Html`, so that no string enters the page unescaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from epicycle.report._plain import text

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "Html | str | Iterable[Html | str | None] | None"


def joined(*children: Child) -> Html:
    """The children one after the other; plain text is escaped."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(child, quote=False))
        else:
            parts.append(joined(*child))
    return Html("".join(parts))


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. ``class_`` stands for class and ``aria_label`` for aria-label; None and False leave one out."""
    given = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        spelt = key.rstrip("_").replace("_", "-")
        given.append(f" {spelt}" if value is True else f' {spelt}="{escape(str(value))}"')
    opening = f"<{name}{''.join(given)}>"
    return Html(opening if name in _VOID else f"{opening}{joined(*children)}</{name}>")


def clipped(value: object, most: int = 60) -> Html:
    """A text shortened to so many characters, with more of it on hovering."""
    short, full = text(value, most), text(value, 200)
    return joined(short) if short == full else tag("span", short, title=full)


def more(left: int, what: str) -> Html:
    """Note of what is left out, "and 9,940 more columns", or nothing."""
    if left <= 0:
        return Html("")
    return tag(
        "p", f"and {left:,} more {what if left > 1 else what.removesuffix('s')}, in the JSON file", class_="more"
    )


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    numeric: Iterable[int] = (),
    label: str,
    marked: int | None = None,
    class_: str | None = None,
) -> Html:
    """A table that scrolls where it is too wide; columns of numbers are aligned right."""
    right = set(numeric)

    def kind(j: int) -> str | None:
        return "n" if j in right else None

    cells = [tag("th", name, scope="col", class_=kind(j)) for j, name in enumerate(head)]
    body = [
        tag(
            "tr",
            [tag("td", cell, class_=kind(j)) for j, cell in enumerate(row)],
            class_="best" if i == marked else None,
        )
        for i, row in enumerate(rows)
    ]
    inner = tag("table", tag("thead", tag("tr", cells)), tag("tbody", body))
    return tag("div", inner, class_=f"box {class_ or ''}".rstrip(), role="region", aria_label=label, tabindex="0")
