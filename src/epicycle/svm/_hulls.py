"""Max margin = min distance: the nearest points of the convex hulls of two classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["HullPoints"]


@dataclass(frozen=True)
class HullPoints:
    r"""The nearest points :math:`\sum_i c_i \phi(x_i)` of the (reduced) convex hulls of two classes.

    Attributes
    ----------
    positive, negative : ndarray
        Which rows of the fit have a share in the point of either class.
    positive_shares, negative_shares : ndarray
        Their shares c, which add up to 1.
    distance : float
        Between the two points, in the space of the kernel.
    margin : float
        The geometric margin 1 / |w|. On separable data with ``C=inf`` the distance is twice the margin.
    largest_share : float
        No share may be larger: 1 for the convex hulls themselves, less for hulls that are reduced until they are apart,
        as they are in the soft case.
    positive_point, negative_point : ndarray or None
        The points as vectors, for a linear kernel.
    """

    positive: np.ndarray
    negative: np.ndarray
    positive_shares: np.ndarray
    negative_shares: np.ndarray
    distance: float
    margin: float
    largest_share: float
    positive_point: np.ndarray | None = None
    negative_point: np.ndarray | None = None
