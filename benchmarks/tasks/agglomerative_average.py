"""Hierarchical clustering by average linkage."""

from __future__ import annotations

from pathlib import Path

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._hierarchy import build, epicycle_tree, fastcluster_tree, heights, rows, scikit_learn_tree


def make(directory: Path, quick: bool) -> Data:
    return rows(1_000 if quick else 8_000, 10, 71)


TASK = Task(
    name="agglomerative_average",
    title="AgglomerativeClustering, 8,000 x 10, average linkage",
    description="""\
Rows around a hundred means that overlap. Heights of all merges may differ by 1e-9 of the largest.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", build, setup=epicycle_tree("average")),
        Implementation("fastcluster", "peer", build, setup=fastcluster_tree("average", "linkage")),
        Implementation("scikit-learn", "peer", build, setup=scikit_learn_tree("average")),
    ),
    quality=heights,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.2),),
)
