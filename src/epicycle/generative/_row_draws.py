"""Random numbers that follow from the rows that they are drawn for: what is estimated of a row is its own.

Every row has a key, a hash of its entries, and number j of draw i for a row is a hash of (key, seed, i, j). So it is
the same wherever the row stands and whatever rows are beside it, for any size of batches and any number of threads.
"""

from __future__ import annotations

import torch

#: The weights of entries are hashes of multiples of this odd number, 2^64 over the golden ratio (Steele et al. 2014).
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FACTORS = (0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))
_SHIFTS = (30, 27, 31)


class RowDraws:
    """Uniform and normal numbers for `n` draws of each row.

    Parameters
    ----------
    x : Tensor
        The rows; two that are equal in single precision have the same numbers.
    n : int
    seed : int, default=0
    first : int, default=0
        Number of the first of these draws, where they are made some at a time.
    """

    def __init__(self, x: torch.Tensor, n: int, seed: int = 0, first: int = 0) -> None:
        entries = (x.flatten(1).float() + 0.0).view(torch.int32).long()  # + 0.0: both zeros are one
        weights = _mixed(_multiples(0, entries.shape[1], x.device)) | 1
        keys = _mixed((entries * weights).sum(1) + _mixed(torch.tensor(seed % (1 << 63), device=x.device)))
        self._keys = _mixed(keys + _multiples(first, n, x.device)[:, None])  # (n, n_rows)
        self.n, self._used = n, 0

    def uniform(self, size: int) -> torch.Tensor:
        """Numbers between 0 and 1 in double precision, of shape (n, n_rows, size): others with every call."""
        words = _mixed(self._keys[:, :, None] + _multiples(self._used, size, self._keys.device))
        self._used += size
        return (_shifted(words, 11).double() + 0.5) * 2.0**-53

    def normal(self, size: int) -> torch.Tensor:
        """Standard normal numbers in double precision, of shape (n, n_rows, size)."""
        return torch.special.ndtri(self.uniform(size))


def _multiples(first: int, n: int, device: torch.device) -> torch.Tensor:
    return torch.arange(first + 1, first + n + 1, device=device) * _GOLDEN


def _mixed(words: torch.Tensor) -> torch.Tensor:
    """SplitMix64's function of 64-bit words; products are modulo 2^64."""
    words = (words ^ _shifted(words, _SHIFTS[0])) * _FACTORS[0]
    words = (words ^ _shifted(words, _SHIFTS[1])) * _FACTORS[1]
    return words ^ _shifted(words, _SHIFTS[2])


def _shifted(words: torch.Tensor, by: int) -> torch.Tensor:
    """Words shifted to the right, with zeros from the left."""
    return (words >> by) & ((1 << (64 - by)) - 1)
