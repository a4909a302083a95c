"""Random streams that are named, not shared.

A stream is fixed by a seed and the keys of the work it serves (epoch, block, tree, chain, ...). Two pieces of work
never draw from one generator, so what they draw does not depend on which thread comes first or on how many there are.
"""

from __future__ import annotations

import secrets
import zlib
from typing import Any, TypeAlias

import numpy as np

from epicycle.core._exceptions import DataError, ParameterTypeError

#: What a `random_state` argument may be.
Seed: TypeAlias = "int | np.integer | np.random.Generator | np.random.RandomState | None"
#: Poisson draws take no mean above this (a little below 2**63).
_MOST_COUNTS = 9.2e18


def seed_of(random_state: Seed) -> int:
    """The integer seed of one fit, below 2**63.

    An integer is its own seed. A Generator or RandomState gives the next number it draws, so that consecutive fits
    differ while the whole program repeats. None draws fresh entropy from the system.
    """
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.uint64))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ParameterTypeError(
        f"random_state={random_state!r}; expected None, an integer >= 0, a numpy Generator or a RandomState."
    )


def stream(random_state: Seed, *keys: int | str) -> np.random.Generator:
    """The generator of one piece of work: the same for the same seed and keys, independent of all others.

    Parameters
    ----------
    random_state : None, int, Generator or RandomState
        The seed. Inside a fit take :func:`seed_of` once and pass the integer, since every other kind moves on.
    *keys : int or str
        Names of the work, such as ``("epoch", 3)``; integers are not negative.

    Examples
    --------
    >>> from epicycle.core._random import stream
    >>> bool(stream(0, "epoch", 3).random() == stream(0, "epoch", 3).random())
    True
    >>> bool(stream(0, "epoch", 3).random() == stream(0, "epoch", 4).random())
    False
    """
    # A string becomes a number behind 2**32 so that it cannot meet an integer key of ordinary size.
    words = tuple(2**32 + zlib.crc32(key.encode()) if isinstance(key, str) else int(key) for key in keys)
    sequence = np.random.SeedSequence(seed_of(random_state), spawn_key=words)
    return np.random.Generator(np.random.Philox(sequence))


def draw_distinct(rng: np.random.Generator, share: np.ndarray, size: int) -> np.ndarray:
    """Indices of `size` different entries, drawn in proportion to their shares, which need not add up to one."""
    p = share / share.sum()
    if np.count_nonzero(p) < size:  # shares that underflow are still shares
        p = np.where(share > 0, np.maximum(p, np.finfo(np.float64).tiny), 0.0)
    return np.asarray(rng.choice(len(p), size=size, replace=False, p=p))


def whole_counts(means: Any) -> np.ndarray:
    """Means of counts that are to be drawn, which NumPy draws as integers of 64 bits."""
    largest = float(np.max(means, initial=0.0))
    if not largest < _MOST_COUNTS:
        raise DataError(f"sample: counts with a mean of {largest:.3g} are beyond the integers of 64 bits")
    return np.asarray(means, dtype=np.float64)
