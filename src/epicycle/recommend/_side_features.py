r"""Cold start: a ridge regression from features to parameters,  minimise  sum_i |y_i - W'f_i - w_0|^2 + penalty |W|^2.

It is learnt from the users or items that have ratings, and gives parameters to those that have features alone.
"""

from __future__ import annotations

import numpy as np

from epicycle.core._exceptions import DataTypeError

Array = np.ndarray


def with_featured(ids: Array, featured: Array | None, label: str) -> Array:
    """All ids, sorted: those with ratings and those with features alone."""
    if featured is None:
        return ids
    if len(ids) and len(featured) and (ids.dtype.kind in "US") != (featured.dtype.kind in "US"):
        raise DataTypeError(
            f"{label}_features: ids such as {featured[0]!r}, where X has {label}s such as {ids[0]!r}; expected one kind"
        )
    return np.union1d(ids, featured)


def aligned(ids: Array, featured: Array, features: Array) -> tuple[Array, Array]:
    """The features in the order of all ids, zeros where there are none, and which ids have some."""
    out, known = np.zeros((len(ids), features.shape[1])), np.zeros(len(ids), dtype=bool)
    place = np.searchsorted(ids, featured)
    out[place], known[place] = features, True
    return out, known


def fill_in(parameters: Array, features: Array, known: Array, rated: Array, penalty: float) -> None:
    """Write parameters for rows that have features and no ratings."""
    learn, cold = known & rated, known & ~rated
    if not cold.any() or not learn.any():
        return
    centre, mean = features[learn].mean(axis=0), parameters[learn].mean(axis=0)
    Z, Y = features[learn] - centre, parameters[learn] - mean
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    W = Vt.T @ ((s / (s * s + penalty))[:, None] * (U.T @ Y))
    parameters[cold] = mean + (features[cold] - centre) @ W
