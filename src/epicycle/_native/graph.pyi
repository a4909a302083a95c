"""Kernels: d-connection and reachability in directed graphs."""

import numpy as np

Array = np.ndarray

def d_connected(
    parent_first: Array,
    parent: Array,
    child_first: Array,
    child: Array,
    sources: Array,
    given: Array,
    target: Array,
    reached: Array,
) -> bool: ...
def reachable(first: Array, index: Array, sources: Array, found: Array) -> None: ...
