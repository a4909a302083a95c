"""Signs of axes: an eigenvector is one with the other sign too, and results should not depend on which was found."""

from __future__ import annotations

import numpy as np


def column_signs(axes: np.ndarray) -> np.ndarray:
    """The signs that make the largest entry of every column positive; of columns without entries 1."""
    if not axes.size:
        return np.ones(axes.shape[1])
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)


def oriented(axes: np.ndarray) -> np.ndarray:
    """Columns with the sign that makes their largest entry positive."""
    return np.asarray(axes * column_signs(axes))
