"""Hierarchical clustering by Ward's linkage, without a matrix of distances."""

from __future__ import annotations

from pathlib import Path

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._hierarchy import build, epicycle_tree, fastcluster_tree, heights, rows


def make(directory: Path, quick: bool) -> Data:
    return rows(5_000 if quick else 50_000, 10, 72)


TASK = Task(
    name="agglomerative_ward",
    title="AgglomerativeClustering, 50,000 x 10, Ward's linkage",
    description="""\
Rows around a hundred means that overlap. All distances would take 10 GB: fastcluster's linkage_vector computes them
when it needs them, as we do; scikit-learn has nothing like it. Heights may differ by 1e-9 of the largest.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", build, setup=epicycle_tree("ward")),
        Implementation("fastcluster", "peer", build, setup=fastcluster_tree("ward", "linkage_vector")),
    ),
    quality=heights,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
