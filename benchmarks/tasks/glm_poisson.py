"""Poisson regression on a tall dense array."""

from __future__ import annotations

from benchmarks.tasks._glm import task

TASK = task(1.0, "glm_poisson", "GeneralizedLinearModel, Poisson family, L2, 500,000 x 40", seed=31)
