"""Kernels: isolation trees."""

import numpy as np

Array = np.ndarray

def grow_isolation_tree(X: Array, max_depth: int, seed: Array) -> tuple[Array, Array, Array, Array, Array]: ...
def path_contributions(
    X: Array, nodes: Array, expected_depth: Array, roots: Array, levels: Array, out: Array, threads: int
) -> None: ...
