"""Spectral clustering of graphs of neighbours, in two and in ten dimensions, and of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._clusters import model

MEASURE = "normalised cut, excess over the least"
#: Rows, columns, clusters, affinity and its options.
CASES: dict[str, tuple[int, int, int, dict[str, Any]]] = {
    "neighbours, 2 columns": (30_000, 2, 4, {"affinity": "nearest_neighbors", "n_neighbors": 10}),
    "neighbours, 10 columns": (10_000, 10, 8, {"affinity": "nearest_neighbors", "n_neighbors": 10}),
    "kernel": (4000, 10, 8, {"affinity": "rbf", "gamma": 0.05}),
}


def make(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(63)
    data = {}
    for name, (rows, p, k, _options) in CASES.items():
        n = 1000 if quick else rows
        means = rng.uniform(-4, 4, size=(k, p))
        data[name] = means[rng.integers(0, k, n)] + rng.normal(size=(n, p)) * (1.0 if p == 2 else 2.0)
    return data


def setup(library: str, name: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        _, _, k, options = CASES[name]
        return model(library, "SpectralClustering")(k, random_state=0, n_jobs=-1, **options), data[name]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    estimator, X = ready
    return {"labels": np.asarray(estimator.fit(X).labels_)}


def cuts(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """By the definition, on the affinities of scikit-learn."""
    from scipy.sparse import csr_array
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.neighbors import kneighbors_graph

    found: dict[str, float] = {}
    case_of = {name: next(case for case in CASES if name.endswith(case)) for name in solutions}
    for case in set(case_of.values()):
        options = CASES[case][3]
        if options["affinity"] == "rbf":
            W = csr_array(rbf_kernel(data[case], gamma=options["gamma"]))
        else:
            C = kneighbors_graph(data[case], options["n_neighbors"], include_self=True)
            W = csr_array((C + C.T) / 2)
        W.setdiag(0.0)
        volume = np.asarray(W.sum(axis=1)).ravel()
        for name in (name for name in solutions if case_of[name] == case):
            groups = [solutions[name]["labels"] == c for c in np.unique(solutions[name]["labels"])]
            found[name] = float(sum(1 - (W[g] @ g.astype(float)).sum() / volume[g].sum() for g in groups))
    least = {case: min(found[name] for name in found if case_of[name] == case) for case in set(case_of.values())}
    return {name: {MEASURE: value - least[case_of[name]]} for name, value in found.items()}


TASK = Task(
    name="spectral",
    title="Spectral clustering by ten neighbours (30,000 x 2, 10,000 x 10) and by a kernel (4,000 x 10)",
    description="""\
Normal clusters that overlap; eigenvectors by each library's default, k-means of their rows from ten starts. The
normalised cut may be 1e-2 above the least of the libraries.""",
    make=make,
    implementations=tuple(
        Implementation(f"{library}, {name}", kind, fit, setup=setup(library, name))
        for name in CASES
        for library, kind in (("epicycle", "epicycle"), ("scikit-learn", "peer"))
    ),
    quality=cuts,
    tolerance=1e-2,
    targets=tuple(
        Target(
            f"speed against scikit-learn, {name}",
            speedup_over_best_peer(f"epicycle, {name}", f"scikit-learn, {name}"),
            at_least=1.5,
        )
        for name in CASES
    ),
)
