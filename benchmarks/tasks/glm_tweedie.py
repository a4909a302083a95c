"""Tweedie(1.5) regression on a tall dense array."""

from __future__ import annotations

from benchmarks.tasks._glm import task

TASK = task(1.5, "glm_tweedie", "GeneralizedLinearModel, Tweedie(1.5) family, L2, 500,000 x 40", seed=33)
