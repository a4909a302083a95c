"""Embeddings: places in few dimensions for rows of many."""

from epicycle.manifold._isomap import Isomap

__all__ = ["Isomap"]
