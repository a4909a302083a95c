"""The certificate of a fit in words, and its objective round by round."""

from __future__ import annotations

from typing import Any

from epicycle.report._markup import Html, joined, tag
from epicycle.report._plain import mapping, numbers, shown, text
from epicycle.report._svg import Canvas, figure, span_of


def convergence(found: dict[str, Any], *, caption: str, per_round: str = "round") -> Html | None:
    """The section of a part of the record with "certificate" and "objective"; None where there is no certificate."""
    certificate = mapping(found.get("certificate"))
    if not certificate:
        return None
    meaning = text(certificate.get("meaning"), 300)
    words = (
        f"{text(certificate.get('kind'), 60).capitalize()} {shown(certificate.get('value'), 2)}, tolerance "
        f"{shown(certificate.get('tolerance'), 2)}: {meaning}."
    )
    if not certificate.get("holds"):
        words = f"The certificate does not hold. {words}"
    picture = _objective(numbers(found.get("objective")), caption, per_round)
    return joined(
        tag("p", words, class_=f"verdict {'good' if certificate.get('holds') else 'bad'}"),
        tag("div", picture, class_="figures") if picture else None,
    )


def _objective(values: list[float | None], caption: str, per_round: str) -> Html | None:
    if sum(v is not None for v in values) < 2:
        return None
    x: list[float | None] = [float(i) for i in range(1, len(values) + 1)]
    canvas = Canvas(span_of(x, pad=0.03), span_of(values))
    canvas.axes(per_round, "objective")
    canvas.line(x, values, "blue")
    canvas.points(x, values, "blue", [f"{per_round} {i}: {shown(v, 6)}" for i, v in enumerate(values, 1)], r=2.6)
    return figure(
        canvas,
        "objective",
        "Objective",
        caption,
        description=f"{len(values)} {per_round}s, from {shown(values[0], 4)} to {shown(values[-1], 4)}.",
    )
