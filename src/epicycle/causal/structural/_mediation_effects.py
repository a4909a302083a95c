"""`MediationEffects`: how much of an effect goes through mediators."""

from __future__ import annotations

from dataclasses import dataclass

from epicycle.causal.structural._effect_size import EffectSize


@dataclass(frozen=True)
class MediationEffects:
    """Parts of an effect through mediators and directly.

    Parameters
    ----------
    total, natural_direct, natural_indirect : EffectSize
        Of the change from control to treated.
    controlled_direct : EffectSize or None
        With the mediators held at given values.
    """

    total: EffectSize
    natural_direct: EffectSize
    natural_indirect: EffectSize
    controlled_direct: EffectSize | None
