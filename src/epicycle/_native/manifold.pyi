"""Kernels: shortest paths, agreement of neighbourhoods."""

import numpy as np

Array = np.ndarray

def shortest_paths(start: Array, index: Array, length: Array, source: Array, threads: int) -> Array: ...
def compare_neighborhoods(A: Array, B: Array, query: Array, k: int, threads: int) -> Array: ...
