"""Features that share a byte: those that are never away from their usual bins in the same row.

Indicators of one category are such features. A column that they share has code 0 where all are at their usual bin, and
further codes for the other bins of each. The trees stay the same to the bit: the histogram of a feature is a piece of
that of its column, and its usual bin holds what remains of the sum over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native

__all__ = ["Bundles", "bundled"]

#: Columns that are stored, as a share of the features, from which bundling does not pay.
WORTH = 0.8


@dataclass(frozen=True)
class Bundles:
    """Where features are stored.

    Attributes
    ----------
    places : int32 ndarray of shape (3, p)
        Of every feature its column, its first code there (0 where it has the column for itself), and its usual bin.
    n_codes : int32 ndarray of shape (q,)
    n_bins : int32 ndarray of shape (p,)
    """

    places: np.ndarray
    n_codes: np.ndarray
    n_bins: np.ndarray

    def in_codes(self, feature: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns and which of their codes go left, for the features and bins of nodes; sides are bits, (m, 4)."""
        column, first, usual = self.places[:, feature]
        bits = np.unpackbits(sides.view(np.uint8), axis=1, bitorder="little")
        for node in np.flatnonzero(first):
            own = bits[node, : self.n_bins[feature[node]]].copy()
            bits[node] = own[usual[node]]
            others = np.delete(own, usual[node])
            bits[node, first[node] : first[node] + len(others)] = others
        return column, np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def bundled(
    rows: np.ndarray, n_bins: np.ndarray, missing: np.ndarray, threads: int
) -> tuple[np.ndarray, Bundles | None]:
    """Rows of bins (n, p) as they are stored, (n, q), and where their features are; as they are where it does not pay.

    Features with missing values, of which `missing` tells, keep a column for themselves.
    """
    *places, n_codes = _native.tree.plan_bundles(rows, n_bins, (~missing).astype(np.uint8), threads)
    if len(n_codes) > WORTH * len(n_bins):
        return rows, None
    bundles = Bundles(np.stack(places), n_codes, n_bins)
    stored = np.empty((len(rows), len(n_codes)), np.uint8)
    _native.tree.bundle_rows(rows, bundles.places, n_codes, n_bins, stored, threads)
    return stored, bundles
