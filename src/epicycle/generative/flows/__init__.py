"""Normalizing flows: exact densities by invertible networks."""

from epicycle.generative.flows._normalizing_flow import NormalizingFlow

__all__ = ["NormalizingFlow"]
