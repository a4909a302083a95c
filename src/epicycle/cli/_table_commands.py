"""Commands that work on a table: clusters, anomalies, effects, recommendations, topics.

All write a folder with the report and their files, and print the result.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import (
    AnomalyRun,
    ClusteringRun,
    EffectRun,
    RecommendationRun,
    TopicRun,
    anomaly_table,
    cluster_table,
    effect_table,
    recommend_table,
    topic_table,
)
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder
from epicycle.core._exceptions import ParameterError
from epicycle.report._plain import plain


def run_table_command(
    function: Callable[..., Any],
    data: str,
    ending: str,
    lines_of: Callable[[Any], Iterable[str]],
    *,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Work on a table, write the folder, whose name has the ending by default, and print the result."""
    keep_no_freed_memory()
    folder = check_folder(out if out is not None else f"{default_folder(data)}-{ending}")
    run = function(data, progress=progress_of(as_json), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
    else:
        print_lines([*lines_of(run), f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}"])


def progress_of(as_json: bool) -> Any:
    """The stream on which progress is shown; none beside JSON."""
    return False if as_json else partial(print, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, each wrapped to the terminal."""
    width = terminal_width(sys.stdout)
    print()
    for line in lines:
        print(wrapped(line, width))


# ------------------------------------------------------------------------------------------------- epicycle cluster

_CLUSTER_SHOWN = 12  # clusters that are printed


def run_clustering(data: str, *, k: str, **options: Any) -> None:
    """Cluster, write the folder, print the result."""
    run_table_command(cluster_table, data, "clusters", cluster_lines, k=_number_of_clusters(k), **options)


def _number_of_clusters(k: str) -> int | str:
    if k == "auto":
        return k
    try:
        return int(k)
    except ValueError:
        raise ParameterError(f"--k {k}: expected auto or a whole number of clusters") from None


def cluster_lines(run: ClusteringRun) -> Iterator[str]:
    """The clusters, the verdict and its reasons."""
    yield f"{run.k} clusters by {run.method}: {run.verdict}"
    for reason in run.reasons:
        yield f"  - {reason}"
    for c in run.clusters[:_CLUSTER_SHOWN]:
        name = "no cluster" if c["cluster"] < 0 else f"cluster {c['cluster']}"
        yield f"{name}: {c['rows']:,} rows ({c['share']:.0%}), {c['summary']}"
        if c["details"]:
            yield f"   {c['details']}"
    if len(run.clusters) > _CLUSTER_SHOWN:
        yield f"and {len(run.clusters) - _CLUSTER_SHOWN} more, in the report"
    if run.skipped:
        yield f"not compared: {'; '.join(run.skipped[:6])}{' ...' if len(run.skipped) > 6 else ''}"
    yield f"{run.seconds:.1f} s"


# ------------------------------------------------------------------------------------------------- epicycle anomalies

_ANOMALIES_SHOWN = 10  # rows that are printed


def run_anomalies(data: str, **options: Any) -> None:
    """Search, write the folder, print the result."""
    run_table_command(anomaly_table, data, "anomalies", anomalies_lines, **options)


def anomalies_lines(run: AnomalyRun) -> Iterator[str]:
    """The verdict, the candidates and the most unusual rows."""
    yield run.verdict
    for row in run.candidates:
        figures = ", ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in row.items() if key != "name")
        yield f"  {row['name']:<30} {figures}"
    for words in run.failed:
        yield f"not compared: {words}"
    for row, why in zip(run.order[:_ANOMALIES_SHOWN].tolist(), run.reasons, strict=False):
        yield f"row {row}{'' if run.flagged[row] else ' (not reported)'}: {why}"


# ------------------------------------------------------------------------------------------------- epicycle effect


def run_effect(data: str, **options: Any) -> None:
    """Estimate, write the folder, print the result."""
    run_table_command(effect_table, data, "effect", effect_lines, **options)


def effect_lines(run: EffectRun) -> Iterator[str]:
    """The conclusion, the estimates side by side, and the doubts."""
    yield run.verdict
    for words in run.identification["words"]:
        yield f"  - {words}"
    for row in run.estimates:
        yield f"{row['name']:<16} {row['effect']:>10.4g}   {row['lower']:.4g} to {row['upper']:.4g}   {row['words']}"
    yield from run.contrast_lines()
    for test in run.refutations:
        yield f"{'passed' if test['passed'] else 'FAILED'} {test['name']}: {test['verdict']}"
    yield "The conclusion is wrong if one of these holds:"
    for doubt in run.doubts:
        yield f"  - {doubt}"


# ------------------------------------------------------------------------------------------------- epicycle recommend

_RECOMMEND_SHOWN = 6  # candidates that are printed


def run_recommendations(data: str, **options: Any) -> None:
    """Choose, write the folder, print the result."""
    run_table_command(recommend_table, data, "recommendations", recommend_lines, **options)


def recommend_lines(run: RecommendationRun) -> Iterator[str]:
    """The verdict, the best candidates and the criteria of the lists."""
    yield run.verdict
    for row in run.candidates[:_RECOMMEND_SHOWN]:
        yield f"  {row['name']:<34} {row['rmse']:.4g}"
    for name, found in run.criteria.items():
        yield (
            f"lists of {'the ' if name == 'model' else ''}{name}: NDCG {found['ndcg']:.3f}, MAP {found['map']:.3f}, "
            f"recall {found['recall']:.1%}, coverage {found['coverage']:.1%}"
        )
    if run.new_users or run.new_items:
        yield f"new in the test: users of {run.new_users:.1%} and items of {run.new_items:.1%} of the ratings"
    for words in run.failed:
        yield f"not compared: {words}"
    yield f"certificate: {run.model.certificate_}"


# ------------------------------------------------------------------------------------------------- epicycle topics

_TOPICS_SHOWN = 20  # topics that are printed


def run_topics(data: str, *, topics: str, **options: Any) -> None:
    """Find the topics, write the folder, print the result."""
    if topics != "auto" and not topics.isdecimal():
        raise ParameterError(f"--topics {topics}: expected a whole number, or auto")
    k = topics if topics == "auto" else int(topics)
    run_table_command(topic_table, data, "topics", topics_lines, topics=k, **options)


def topics_lines(run: TopicRun) -> Iterator[str]:
    """The verdict and the words of the topics."""
    yield run.verdict
    for number, topic in enumerate(run.topics[:_TOPICS_SHOWN], 1):
        yield f"  {number:>3} {topic['share']:6.1%}  {' '.join(topic['words'][:10])}"
    if len(run.topics) > _TOPICS_SHOWN:
        yield f"and {len(run.topics) - _TOPICS_SHOWN:,} more topics"
    yield f"certificate: {run.model[-1].certificate_}"
