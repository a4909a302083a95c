"""``epicycle recommend``: choose a recommender for a table of ratings, print what it is worth, write the folder."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import RecommendationRun, recommend_table
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder

_SHOWN = 6  # candidates that are printed


def run_recommendations(data: str, *, out: Path | None, as_json: bool, **options: Any) -> None:
    """Choose, write the folder, print the result."""
    keep_no_freed_memory()
    folder = check_folder(out if out is not None else f"{default_folder(data)}-recommendations")
    run = recommend_table(data, progress=False if as_json else partial(print, flush=True), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**run.metrics(), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def print_run(run: RecommendationRun, folder: Path) -> None:
    """Print the verdict, the best candidates and the criteria of the lists."""
    width = terminal_width(sys.stdout)

    def say(text: str) -> None:
        print(wrapped(text, width))

    print()
    say(run.verdict)
    for row in run.candidates[:_SHOWN]:
        say(f"  {row['name']:<34} {row['rmse']:.4g}")
    for name, found in run.criteria.items():
        say(
            f"lists of {'the ' if name == 'model' else ''}{name}: NDCG {found['ndcg']:.3f}, MAP {found['map']:.3f}, "
            f"recall {found['recall']:.1%}, coverage {found['coverage']:.1%}"
        )
    if run.new_users or run.new_items:
        say(f"new in the test: users of {run.new_users:.1%} and items of {run.new_items:.1%} of the ratings")
    for words in run.failed:
        say(f"not compared: {words}")
    say(f"certificate: {run.model.certificate_}")
    say(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")
