"""Hierarchical clustering by single linkage, without a matrix of distances."""

from __future__ import annotations

from pathlib import Path

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._hierarchy import (
    build,
    epicycle_tree,
    fastcluster_tree,
    genie_tree,
    heights,
    rows,
    scikit_learn_tree,
)


def make(directory: Path, quick: bool) -> Data:
    return rows(2_000 if quick else 20_000, 10, 73)


TASK = Task(
    name="agglomerative_single",
    title="AgglomerativeClustering, 20,000 x 10, single linkage",
    description="""\
Rows around a hundred means that overlap; minimum spanning trees in memory for the rows. Heights of all merges may
differ by 1e-9 of the largest.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", build, setup=epicycle_tree("single")),
        Implementation("fastcluster", "peer", build, setup=fastcluster_tree("single", "linkage_vector")),
        Implementation("scikit-learn", "peer", build, setup=scikit_learn_tree("single")),
        Implementation("genieclust", "peer", build, setup=genie_tree),
    ),
    quality=heights,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
