"""Kernels: contrast functions of independent components; products with the scatter of sparse rows."""

from typing import Any

import numpy as np

Array = np.ndarray

def contrast(
    Y: Array, weight: Array | None, kind: int, parameter: float, want_values: bool, slope_rows: Array | None
) -> tuple[Array, Array]: ...
def scatter_product(
    X: Any, weight: Array | None, shift: Array, V: Array, out: Array, sums: Array, threads: int
) -> None: ...
