"""Embeddings: places in few dimensions for rows of many."""

from epicycle.manifold._classical_mds import ClassicalMDS
from epicycle.manifold._isomap import Isomap
from epicycle.manifold._locally_linear_embedding import LocallyLinearEmbedding, locally_linear_embedding
from epicycle.manifold._mds import MDS
from epicycle.manifold._neighbor_embedding import NeighborEmbedding
from epicycle.manifold._smacof import smacof
from epicycle.manifold._sne import SNE
from epicycle.manifold._tsne import TSNE

__all__ = [
    "MDS",
    "SNE",
    "TSNE",
    "ClassicalMDS",
    "Isomap",
    "LocallyLinearEmbedding",
    "NeighborEmbedding",
    "locally_linear_embedding",
    "smacof",
]
