"""`Expansion`: the derivatives of a cost along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Expansion:
    """Gradients and Hessians of the costs of all steps, and of the last state."""

    lx: Array
    lu: Array
    lxx: Array
    luu: Array
    lux: Array
    final_x: Array
    final_xx: Array
