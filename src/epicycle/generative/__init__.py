"""Models that draw new rows like those they were fitted to, tables and images alike (the extra `deep`)."""

from epicycle.generative import evaluate
from epicycle.generative.adversarial import GAN
from epicycle.generative.autoencoders import VAE, AutoEncoder, Decoder, WakeSleep
from epicycle.generative.diffusion import DiffusionModel
from epicycle.generative.energy import EnergyBasedModel, RestrictedBoltzmannMachine
from epicycle.generative.flows import NormalizingFlow
from epicycle.generative.style import StyleTransfer

__all__ = [
    "GAN",
    "VAE",
    "AutoEncoder",
    "Decoder",
    "DiffusionModel",
    "EnergyBasedModel",
    "NormalizingFlow",
    "RestrictedBoltzmannMachine",
    "StyleTransfer",
    "WakeSleep",
    "evaluate",
]
