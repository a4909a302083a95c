"""Rewards learnt from an expert."""

from epicycle.rl.inverse._inverse_rl import InverseRL

__all__ = ["InverseRL"]
