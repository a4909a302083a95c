"""``epicycle recommend``: choose a recommender for a table of ratings, print what it is worth, write the folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epicycle.automl import RecommendationRun, recommend_table
from epicycle.cli._table_command import run_table_command

_SHOWN = 6  # candidates that are printed


def run_recommendations(data: str, **options: Any) -> None:
    """Choose, write the folder, print the result."""
    run_table_command(recommend_table, data, "recommendations", lines_of, **options)


def lines_of(run: RecommendationRun) -> Iterator[str]:
    """The verdict, the best candidates and the criteria of the lists."""
    yield run.verdict
    for row in run.candidates[:_SHOWN]:
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
