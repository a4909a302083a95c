"""``epicycle topics``: find the topics of a column of texts, print them, write the folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epicycle.automl import TopicRun, topic_table
from epicycle.cli._table_command import run_table_command
from epicycle.core._exceptions import ParameterError

_SHOWN = 20  # topics that are printed


def run_topics(data: str, *, topics: str, **options: Any) -> None:
    """Find the topics, write the folder, print the result."""
    if topics != "auto" and not topics.isdecimal():
        raise ParameterError(f"--topics {topics}: expected a whole number, or auto")
    k = topics if topics == "auto" else int(topics)
    run_table_command(topic_table, data, "topics", lines_of, topics=k, **options)


def lines_of(run: TopicRun) -> Iterator[str]:
    """The verdict and the words of the topics."""
    yield run.verdict
    for number, topic in enumerate(run.topics[:_SHOWN], 1):
        yield f"  {number:>3} {topic['share']:6.1%}  {' '.join(topic['words'][:10])}"
    if len(run.topics) > _SHOWN:
        yield f"and {len(run.topics) - _SHOWN:,} more topics"
    yield f"certificate: {run.model[-1].certificate_}"
