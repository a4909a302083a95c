"""Which row a perceptron is shown when: by what is in the rows, never by how they are stored.

A row of weight v is shown v times, a last time for the fraction that is left, one right after the other before the
order is shuffled. So a fit is the same for rows in another order, and for rows that are repeated instead of weighted.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from epicycle import _native

__all__ = ["by_content", "repeated"]

_MOST = 100  # beyond this weight a row is not shown more often; each time counts for more


def by_content(rows: Any, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The rows in an order that depends on what is in them alone; equal rows come one after the other."""
    keys = np.empty(len(codes), dtype=np.uint64)
    if rows.dtype == object:
        keys[:] = [
            int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
            for text in rows.tolist()
        ]
    else:
        _native.core.row_hashes(rows, keys)
    with np.errstate(over="ignore"):  # as the linear perceptron does it, so that both see the same order
        keys += codes.astype(np.float64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.lexsort((weight, keys))


def repeated(order: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(row of every presentation, what it counts for; None where each counts for one)."""
    w = weight[order]
    times = np.ceil(np.minimum(w, _MOST)).astype(np.int64)
    shown = np.repeat(order, times)
    share = np.repeat(np.where(w > _MOST, w / _MOST, 1.0), times)
    fraction = w - np.floor(w)
    partly = (fraction > 0) & (w < _MOST)
    share[(np.cumsum(times) - 1)[partly]] = fraction[partly]
    return shown.astype(np.int64), None if bool((share == 1).all()) else share
