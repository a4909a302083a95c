"""Names of single numbers among draws: ``mu``, ``theta[0]``, ``R[1, 0]``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def indexed(name: str, x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Every number of a parameter with its label, and its draws of shape (n_chains, n_draws)."""
    for i in np.ndindex(x.shape[2:]):
        yield (f"{name}[{', '.join(map(str, i))}]" if i else name), x[(..., *i)]
