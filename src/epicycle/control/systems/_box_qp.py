"""Quadratic programs between bounds:  minimise  1/2 k'Hk + g'k  with  low <= k <= high,  H positive definite.

Projected Newton steps (Bertsekas 1982): entries that stand at a bound with a gradient out of the box are held, the
others take Newton's step, cut to the box, with Armijo's condition along the cut path.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

Array = np.ndarray
_ROUNDS = 100  # each changes the set of held entries, or ends: far more than small problems need
_HALVINGS = 30
_ARMIJO = 0.1
_ROUNDING = 1e-12


def box_qp(H: Array, g: Array, low: Array, high: Array, start: Array | None = None) -> tuple[Array, Array]:
    """Minimiser, and the entries that are not held at a bound."""
    if len(g) == 1:
        k = -g / H[0, 0]
        free = (k > low) & (k < high)
        return np.clip(k, low, high), free
    k = np.clip(np.zeros_like(g) if start is None else start, low, high)
    for _ in range(_ROUNDS):
        slope = H @ k + g
        size = np.abs(H) @ np.abs(k) + np.abs(g)
        held = ((k <= low) & (slope > 0)) | ((k >= high) & (slope < 0))
        free = ~held
        if not free.any() or (np.abs(slope[free]) <= _ROUNDING * size[free]).all():
            return k, free
        step = np.zeros_like(k)
        step[free] = -scipy.linalg.solve(H[np.ix_(free, free)], slope[free], assume_a="pos")
        after = _along(H, low, high, k, slope, step)
        if np.array_equal(after, k):
            return k, free
        k = after
    return k, free


def _along(H: Array, low: Array, high: Array, k: Array, slope: Array, step: Array) -> Array:
    """The longest of the halved steps, cut to the box, that lowers the objective enough."""
    length = 1.0
    for _ in range(_HALVINGS):
        after = np.clip(k + length * step, low, high)
        move = after - k
        change = slope @ move + 0.5 * move @ H @ move
        if change <= _ARMIJO * (slope @ move) and change <= 0:
            return after
        length /= 2
    return k
