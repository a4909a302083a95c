"""Embeddings: places in few dimensions for rows of many."""

from epicycle.manifold._tsne import TSNE

__all__ = ["TSNE"]
