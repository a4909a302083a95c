"""Kernels: local regression on a line and in space."""

import numpy as np

Array = np.ndarray

def line_radii(x: Array, upto: Array | None, queries: Array, share: float, threads: int) -> Array: ...
def line(
    x: Array,
    y: Array,
    c: Array,
    queries: Array,
    h: Array,
    kernel: int,
    degree: int,
    squares: bool,
    threads: int,
) -> tuple[Array, Array, Array, Array, Array]: ...
def space_radii(x: Array, prior: Array, queries: Array, share: float, threads: int) -> Array: ...
def space(
    x: Array,
    y: Array,
    c: Array,
    queries: Array,
    h: Array,
    kernel: int,
    degree: int,
    squares: bool,
    threads: int,
) -> tuple[Array, Array, Array, Array, Array]: ...
