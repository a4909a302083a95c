"""Poisson regression on a tall dense array."""

from __future__ import annotations

from pathlib import Path

from benchmarks.task import Data
from benchmarks.tasks._glm import rows, task


def make(directory: Path, quick: bool) -> Data:
    return rows(1.0, 31, quick)


TASK = task(1.0, "glm_poisson", "GeneralizedLinearModel, Poisson family, L2, 500,000 x 40", make)
