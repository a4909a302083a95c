"""``epicycle cluster``: find clusters in a table, print what they are worth, write the folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epicycle.automl import ClusteringRun, cluster_table
from epicycle.cli._table_command import run_table_command
from epicycle.core._exceptions import ParameterError

_SHOWN = 12  # clusters that are printed


def run_clustering(data: str, *, k: str, **options: Any) -> None:
    """Cluster, write the folder, print the result."""
    run_table_command(cluster_table, data, "clusters", lines_of, k=_number_of_clusters(k), **options)


def _number_of_clusters(k: str) -> int | str:
    if k == "auto":
        return k
    try:
        return int(k)
    except ValueError:
        raise ParameterError(f"--k {k}: expected auto or a whole number of clusters") from None


def lines_of(run: ClusteringRun) -> Iterator[str]:
    """The clusters, the verdict and its reasons."""
    yield f"{run.k} clusters by {run.method}: {run.verdict}"
    for reason in run.reasons:
        yield f"  - {reason}"
    for c in run.clusters[:_SHOWN]:
        name = "no cluster" if c["cluster"] < 0 else f"cluster {c['cluster']}"
        yield f"{name}: {c['rows']:,} rows ({c['share']:.0%}), {c['summary']}"
        if c["details"]:
            yield f"   {c['details']}"
    if len(run.clusters) > _SHOWN:
        yield f"and {len(run.clusters) - _SHOWN} more, in the report"
    if run.skipped:
        yield f"not compared: {'; '.join(run.skipped[:6])}{' ...' if len(run.skipped) > 6 else ''}"
    yield f"{run.seconds:.1f} s"
