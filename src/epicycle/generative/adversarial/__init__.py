"""Generators that learn from a critic which tells their rows from real ones."""

from epicycle.generative.adversarial._gan import GAN

__all__ = ["GAN"]
