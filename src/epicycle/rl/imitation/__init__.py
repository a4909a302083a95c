"""Policies learnt from an expert."""

from epicycle.rl.imitation._behavior_cloning import BehaviorCloning
from epicycle.rl.imitation._dagger import DAgger

__all__ = ["BehaviorCloning", "DAgger"]
