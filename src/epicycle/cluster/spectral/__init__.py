"""Embedding and clustering by the eigenvectors of graphs."""

from epicycle.cluster.spectral._spectral_clustering import SpectralClustering
from epicycle.cluster.spectral._spectral_embedding import SpectralEmbedding

__all__ = ["SpectralClustering", "SpectralEmbedding"]
