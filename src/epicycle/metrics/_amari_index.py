"""The Amari index: how far a matrix that undoes a mixture is from doing so, up to order and scale of the sources."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core.estimator._catalogue import in_catalogue


@in_catalogue("metrics", "E9", certificate="exact")
def amari_index(unmixing: Any, mixing: Any) -> float:
    r"""Distance of unmixed signals from the sources: 0 if each is one source, 1 if all are in each to the same degree.

    .. math:: \frac{1}{2k(k-1)} \left[ \sum_i \left( \sum_j \frac{|p_{ij}|}{\max_l |p_{il}|} - 1 \right)
              + \sum_j \left( \sum_i \frac{|p_{ij}|}{\max_l |p_{lj}|} - 1 \right) \right], \qquad P = BA

    Order and signs of the sources play no part, their scales do: take A for sources of equal variance.

    Parameters
    ----------
    unmixing : array-like of shape (k, n_features)
        B, such as ``FastICA().fit(X).components_``.
    mixing : array-like of shape (n_features, k)
        A with x = A s.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.metrics import amari_index
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> round(amari_index(-np.linalg.inv(A)[::-1], A), 12)
    0.0
    >>> amari_index([[1.0, 1.0], [1.0, -1.0]], np.eye(2))
    1.0
    """
    B, A = (np.asarray(M, dtype=np.float64) for M in (unmixing, mixing))
    if B.ndim != 2 or A.ndim != 2 or B.shape != A.shape[::-1]:
        raise DataError(f"unmixing: shape {B.shape} with mixing of shape {A.shape}; expected (k, p) and (p, k)")
    if not (np.isfinite(B).all() and np.isfinite(A).all()):
        raise DataError("unmixing, mixing: expected finite numbers")
    scale = float(np.abs(B).max(initial=0.0)), float(np.abs(A).max(initial=0.0))
    P = np.abs((B / (scale[0] or 1.0)) @ (A / (scale[1] or 1.0)))  # products stay numbers
    k = len(P)
    if not (P.max(axis=0) > 0).all() or not (P.max(axis=1) > 0).all():
        raise DataError("unmixing: a row or a source of zeros; expected every signal to hold something of a source")
    if k == 1:
        return 0.0
    by_row = (P.sum(axis=1) / P.max(axis=1) - 1.0).sum()
    by_column = (P.sum(axis=0) / P.max(axis=0) - 1.0).sum()
    return float((by_row + by_column) / (2 * k * (k - 1)))
