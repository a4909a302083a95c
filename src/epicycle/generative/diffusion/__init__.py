"""Models that undo noise step by step."""

from epicycle.generative.diffusion._diffusion_model import DiffusionModel

__all__ = ["DiffusionModel"]
