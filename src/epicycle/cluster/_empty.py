"""Clusters without rows."""

from __future__ import annotations

import warnings

import numpy as np

from epicycle.core._exceptions import ConvergenceWarning


def warn_of_empty(label: np.ndarray, k: int) -> None:
    """Some clusters have no rows: there are fewer different rows than clusters."""
    distinct = len(np.unique(label))
    if distinct < k:
        warnings.warn(
            f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({k}). "
            "Possibly due to duplicate points in X.",
            ConvergenceWarning,
            stacklevel=5,
        )
