"""Whether two objects are the same in type and content; shares nothing with the code that stores them."""

import math

import numpy as np
import scipy.sparse


def same(a, b):  # noqa: C901 - one branch for each type
    """Same type, same content, down to the bits of arrays; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "O":
            return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if scipy.sparse.issparse(a):
        parts = ("data", "indices", "indptr")
        return a.shape == b.shape and all(same(getattr(a, part), getattr(b, part)) for part in parts)
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(same(k, m) and same(v, w) for (k, v), (m, w) in pairs)
    if hasattr(a, "get_params"):
        return same(vars(a), vars(b))
    if type(a).__name__ in ("BSpline", "make_column_selector"):
        return same(
            {k: v for k, v in vars(a).items() if not k.startswith("_")},
            {k: v for k, v in vars(b).items() if not k.startswith("_")},
        )
    return bool(a == b)
