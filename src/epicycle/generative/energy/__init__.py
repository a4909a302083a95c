"""Energy-based models."""

from epicycle.generative.energy._energy_based_model import EnergyBasedModel
from epicycle.generative.energy._restricted_boltzmann_machine import RestrictedBoltzmannMachine

__all__ = ["EnergyBasedModel", "RestrictedBoltzmannMachine"]
