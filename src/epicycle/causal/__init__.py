"""Causal learning: graphs, identification, structural models, effects of treatments."""

from epicycle.causal.effects._treatment_effect import TreatmentEffect

__all__ = ["TreatmentEffect"]
