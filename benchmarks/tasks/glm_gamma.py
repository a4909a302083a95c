"""Gamma regression on a tall dense array."""

from __future__ import annotations

from benchmarks.tasks._glm import task

TASK = task(2.0, "glm_gamma", "GeneralizedLinearModel, Gamma family, L2, 500,000 x 40", seed=32)
