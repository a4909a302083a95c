"""All cases, and the share of one of them in a process of its own."""

from __future__ import annotations

import epicycle as ep
from benchmarks.coverage.case import Case
from benchmarks.coverage.designs import DESIGNS
from benchmarks.coverage.effects import EFFECTS, IDENTIFIED

CASES: list[Case] = [*EFFECTS, *IDENTIFIED, *DESIGNS]


def share(number: int, n_studies: int) -> float:
    """The share of one case on one thread; cases are named by number, for processes that start anew."""
    with ep.config(n_jobs=1):
        found = CASES[number].share(n_studies)
    print(f"{found:.3f}  {CASES[number].method}, {CASES[number].studies}", flush=True)
    return found
