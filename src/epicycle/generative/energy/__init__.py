"""Models that give every row an energy."""

from epicycle.generative.energy._energy_based_model import EnergyBasedModel

__all__ = ["EnergyBasedModel"]
