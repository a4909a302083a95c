"""Bounds on what a model file may claim. Writer and reader share them: what can be saved can be loaded."""

from typing import Final

#: The format this release writes, and the highest that it reads.
FORMAT_NAME: Final = "epicycle model"
FORMAT_VERSION: Final = 1

MAX_MANIFEST_BYTES: Final = 64 * 1024
MAX_MODEL_BYTES: Final = 256 * 1024**2
MAX_ARRAYS_BYTES: Final = 64 * 1024**3
MAX_HEADER_BYTES: Final = 64 * 1024**2

#: Levels of brackets in any JSON text; a node of the tree takes at most three.
MAX_JSON_DEPTH: Final = 200
MAX_DEPTH: Final = 64
MAX_NODES: Final = 8_000_000

MAX_DIMENSIONS: Final = 32
MAX_LENGTH: Final = 2**48
MAX_INT_BITS: Final = 4096
MAX_BYTES_LITERAL: Final = 16 * 1024**2
