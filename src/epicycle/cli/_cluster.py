"""``epicycle cluster``: find clusters in a table, print what they are worth, write the folder."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import ClusteringRun, cluster_table
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder
from epicycle.core._exceptions import ParameterError
from epicycle.report._plain import plain

_SHOWN = 12  # clusters that are printed


def run_clustering(data: str, *, k: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Cluster, write the folder, print the result."""
    keep_no_freed_memory()
    number = _number_of_clusters(k)
    folder = check_folder(out if out is not None else f"{default_folder(data)}-clusters")
    run = cluster_table(data, number, progress=False if as_json else partial(print, flush=True), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def _number_of_clusters(k: str) -> int | str:
    if k == "auto":
        return k
    try:
        return int(k)
    except ValueError:
        raise ParameterError(f"--k {k}: expected auto or a whole number of clusters") from None


def print_run(run: ClusteringRun, folder: Path) -> None:
    """Print the clusters, the verdict and its reasons."""
    width = terminal_width(sys.stdout)

    def say(text: str) -> None:
        print(wrapped(text, width))

    print()
    say(f"{run.k} clusters by {run.method}: {run.verdict}")
    for reason in run.reasons:
        say(f"  - {reason}")
    for c in run.clusters[:_SHOWN]:
        name = "no cluster" if c["cluster"] < 0 else f"cluster {c['cluster']}"
        say(f"{name}: {c['rows']:,} rows ({c['share']:.0%}), {c['summary']}")
        if c["details"]:
            say(f"   {c['details']}")
    if len(run.clusters) > _SHOWN:
        say(f"and {len(run.clusters) - _SHOWN} more, in the report")
    if run.skipped:
        say(f"not compared: {'; '.join(run.skipped[:6])}{' ...' if len(run.skipped) > 6 else ''}")
    say(f"{run.seconds:.1f} s; written to {folder}: {', '.join(sorted(os.listdir(folder)))}")
