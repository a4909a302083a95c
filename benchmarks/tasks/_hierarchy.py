"""Common parts of the tasks of hierarchical clustering: rows, peers, and the comparison of heights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Quality, Solution

MEASURE = "heights, largest relative difference from those of fastcluster"


def rows(n: int, p: int, seed: int) -> Data:
    """Rows around a hundred means that overlap."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(100, p))
    return {"X": means[rng.integers(0, 100, n)] + rng.normal(size=(n, p))}


def epicycle_tree(linkage: str) -> Callable[[Data], Callable[[], np.ndarray]]:
    """The fit of our class."""

    def prepare(data: Data) -> Callable[[], np.ndarray]:
        from epicycle import AgglomerativeClustering

        model = AgglomerativeClustering(linkage=linkage)
        return lambda: np.asarray(model.fit(data["X"]).linkage_[:, 2])

    return prepare


def fastcluster_tree(linkage: str, function: str) -> Callable[[Data], Callable[[], np.ndarray]]:
    """The function of fastcluster over all distances ("linkage") or over the rows ("linkage_vector")."""

    def prepare(data: Data) -> Callable[[], np.ndarray]:
        import fastcluster

        return lambda: np.asarray(getattr(fastcluster, function)(data["X"], linkage)[:, 2])

    return prepare


def scikit_learn_tree(linkage: str) -> Callable[[Data], Callable[[], np.ndarray]]:
    """The fit of scikit-learn's class, with heights."""

    def prepare(data: Data) -> Callable[[], np.ndarray]:
        from sklearn.cluster import AgglomerativeClustering

        model = AgglomerativeClustering(linkage=linkage, compute_distances=True)
        return lambda: np.asarray(model.fit(data["X"]).distances_)

    return prepare


def genie_tree(data: Data) -> Callable[[], np.ndarray]:
    """Single linkage: the genie without its Gini index, and a new one each time, because it keeps its spanning tree."""
    from genieclust import Genie

    def tree() -> np.ndarray:
        model = Genie(n_clusters=2, gini_threshold=1.0).fit(data["X"])
        return np.sort(np.asarray(model.distances_, dtype=np.float64))

    return tree


def build(ready: Callable[[], np.ndarray]) -> Solution:
    """The heights of the merges."""
    return {"heights": ready()}


def heights(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """The largest difference from the peer's heights, relative to the largest of them."""
    reference: Any = solutions["fastcluster"]["heights"]
    scale = float(reference.max())
    return {
        name: {MEASURE: float(np.abs(solution["heights"] - reference).max()) / scale}
        for name, solution in solutions.items()
    }
