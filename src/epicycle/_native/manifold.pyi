"""Kernels: shortest paths, agreement of neighbourhoods, scaling, forces of neighbours."""

import numpy as np

Array = np.ndarray

class Edges:
    def __init__(self, first: Array, other: Array, value: Array, weight: Array) -> None: ...

class Forces:
    def __init__(
        self,
        logarithmic: bool,
        softness: float,
        freedom: float,
        attraction: float,
        repulsion: float,
        normalised: bool,
        method: int,
        angle: float,
        step: float,
    ) -> None: ...

def calibrate(distances: Array, perplexity: float, threads: int) -> Array: ...
def descend(
    points: Array,
    velocity: Array,
    gains: Array,
    edges: Edges,
    forces: Forces,
    rate: float,
    momentum: float,
    count: int,
    threads: int,
) -> tuple[float, float, float]: ...
def fuzzy(distances: Array, target: float, threads: int) -> Array: ...
def gradient(points: Array, edges: Edges, forces: Forces, threads: int) -> tuple[Array, float, float]: ...
def place(points: Array, edges: Edges, fixed: Array, forces: Forces, threads: int) -> None: ...
def sne(P: Array, both: Array, points: Array, threads: int) -> tuple[float, Array]: ...
def shortest_paths(start: Array, index: Array, length: Array, source: Array, threads: int) -> Array: ...
def compare_neighborhoods(A: Array, B: Array, query: Array, k: int, threads: int) -> Array: ...
def guttman(X: Array, target: Array, weight: Array | None, threads: int) -> tuple[Array, Array, Array]: ...
def monotone_disparities(
    X: Array, first: Array, second: Array, weight: Array | None, group: Array, D: Array
) -> float: ...
