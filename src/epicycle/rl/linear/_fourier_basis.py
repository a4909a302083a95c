"""Fourier basis: cosines of the states."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.rl.linear._bounds import checked_bounds, scaled

Array = np.ndarray
_MOST = 1_000_000


class FourierBasis:
    r"""Features :math:`\phi_c(x) = \cos(\pi\, c \cdot x)` of states in a box, scaled to the unit one (Konidaris).

    All integer vectors c with entries up to `order`.

    Parameters
    ----------
    low, high : arrays (d,)
        Box of the states; what lies outside is moved to its edge.
    order : int, default=3
        Largest entry of c.

    Attributes
    ----------
    n_features : int
        :math:`(\text{order} + 1)^d`.

    Examples
    --------
    >>> from epicycle.rl import FourierBasis
    >>> FourierBasis([0.0], [2.0], order=2)([[1.0]]).round(6).tolist()
    [[1.0, 0.0, -1.0]]
    """

    def __init__(self, low: Any, high: Any, *, order: int = 3) -> None:
        self.low, self.high = checked_bounds(low, high)
        self.order = count("order", order, low=0)
        self.n_features = (self.order + 1) ** len(self.low)
        if self.n_features > _MOST:
            raise DataError(
                f"order={order}: {self.n_features:,} features of {len(self.low)} coordinates; at most {_MOST:,}"
            )
        self._c = np.array(list(product(range(self.order + 1), repeat=len(self.low))), dtype=np.float64)
        self._all = np.arange(self.n_features)

    def active(self, x: Array) -> tuple[Array, Array | None]:
        """Indices of the features of one state, and their values."""
        return self._all, np.cos(np.pi * (self._c @ scaled(x, self.low, self.high)))

    @property
    def scale(self) -> float:
        """Mean of the sum of the squares of the features, by which learning rates are divided."""
        return float(self.n_features + 1) / 2

    def __call__(self, X: Any) -> Array:
        """Features of states (rows, d), as an array (rows, n_features)."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        return np.asarray(np.cos(np.pi * scaled(X, self.low, self.high) @ self._c.T))

    def __repr__(self) -> str:
        return f"FourierBasis({len(self.low)} coordinates, order={self.order})"

    def __epi_state__(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "order": self.order}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(state["low"], state["high"], order=state["order"])  # type: ignore[misc]
