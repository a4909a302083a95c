"""Kernels: shares and sums of the components of a mixture."""

import numpy as np

Array = np.ndarray

def normal_sums(
    X: Array, weight: Array | None, constants: Array, means: Array, factors: Array, diagonal: bool, pooled: bool
) -> tuple[float, Array, Array, Array]: ...
def normal_log_joint(X: Array, constants: Array, means: Array, factors: Array, diagonal: bool) -> Array: ...
