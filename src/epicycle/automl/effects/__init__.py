"""Effects of a treatment in a table: :func:`effect_table` and what it returns."""

from epicycle.automl.effects._effect_run import EffectRun
from epicycle.automl.effects._effect_table import effect_table

__all__ = ["EffectRun", "effect_table"]
