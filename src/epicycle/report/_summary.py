"""A short form of the report, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicycle.report._markup import clipped, joined, table, tag
from epicycle.report._plain import items, mapping, plain, shown, text, whole
from epicycle.report._scores import metrics
from epicycle.report._wording import headline, metric_label, model_name, next_steps, scored

_ROWS = 6


def report_summary(record: Mapping[str, Any]) -> str:
    """The headline, the first candidates, the scores on the test set and the next steps, as HTML without a style."""
    given = mapping(plain(record))
    rows = scored(items(given.get("leaderboard")))
    ranked = [
        [
            clipped(model_name(row), 64),
            shown(row.get("score_mean")),
            shown(row.get("score_se"), 2),
            whole(row.get("n_folds")),
        ]
        for row in rows[:_ROWS]
    ]
    steps = next_steps(given, 4)
    return tag(
        "div",
        tag("strong", text(given.get("title"), 120)),
        [tag("p", words) for words in headline(given)],
        table(["model", metric_label(given), "± s.e.", "folds"], ranked, numeric=(1, 2, 3), label="leaderboard"),
        metrics(given),
        joined(tag("p", "Next steps:"), tag("ul", [tag("li", step) for step in steps])) if steps else None,
        class_="epicycle",
    )
