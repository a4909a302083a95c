"""The contract below the data: errors, settings, parameters, evidence, threads, random streams, figure style."""

from epicycle.core._settings import Settings

__all__ = ["Settings"]
