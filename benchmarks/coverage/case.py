"""A method, the studies that it meets, and what came out of many of them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from epicycle.exceptions import OverlapWarning


@dataclass(frozen=True)
class Case:
    """Studies of one kind and an interval for each.

    method : the call, as a reader would write it.
    studies : what the studies are, in a few words.
    rows : rows of each.
    inside : of the number of a study, whether the interval holds the effect.
    """

    method: str
    studies: str
    rows: int
    inside: Callable[[int], bool]

    def share(self, n_studies: int) -> float:
        """The share of the studies whose interval holds the effect."""
        with _quiet():
            return sum(self.inside(seed) for seed in range(n_studies)) / n_studies


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings of single rows that have hardly any like them: among hundreds of studies there are some."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        yield
