"""``epicycle topics``: find the topics of a column of texts, print them, write the folder."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import TopicRun, topic_table
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder
from epicycle.core._exceptions import ParameterError

_SHOWN = 20  # topics that are printed


def run_topics(data: str, *, topics: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Find the topics, write the folder, print the result."""
    keep_no_freed_memory()
    folder = check_folder(out if out is not None else f"{default_folder(data)}-topics")
    if topics != "auto" and not topics.isdecimal():
        raise ParameterError(f"--topics {topics}: expected a whole number, or auto")
    k = topics if topics == "auto" else int(topics)
    run = topic_table(data, topics=k, progress=False if as_json else partial(print, flush=True), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**run.metrics(), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def print_run(run: TopicRun, folder: Path) -> None:
    """Print the verdict and the words of the topics."""
    width = terminal_width(sys.stdout)

    def say(text: str) -> None:
        print(wrapped(text, width))

    print()
    say(run.verdict)
    for number, topic in enumerate(run.topics[:_SHOWN], 1):
        say(f"  {number:>3} {topic['share']:6.1%}  {' '.join(topic['words'][:10])}")
    if len(run.topics) > _SHOWN:
        say(f"and {len(run.topics) - _SHOWN:,} more topics")
    say(f"certificate: {run.model[-1].certificate_}")
    say(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")
