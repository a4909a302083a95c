"""Model files: what goes out, and comes back without running anything."""

from epicycle.io.classes import register
from epicycle.io.description import ArrayDescription, ModelDescription, describe
from epicycle.io.files import load, save

__all__ = ["ArrayDescription", "ModelDescription", "describe", "load", "register", "save"]
