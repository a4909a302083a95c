"""Model files: what goes out, and comes back without running anything.

An ``.epi`` file is a zip of three stored members: ``manifest.json`` (format version, versions of the writer, sizes and
SHA-256 of the rest), ``model.json`` (the tree of values, see `schema`) and ``arrays.safetensors`` (its arrays).
"""

from epicycle.io._describe import ArrayDescription, ModelDescription, describe
from epicycle.io._files import load, save
from epicycle.io._registry import register

__all__ = ["ArrayDescription", "ModelDescription", "describe", "load", "register", "save"]
