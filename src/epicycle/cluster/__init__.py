"""Clustering."""

from epicycle.cluster.density import DBSCAN, dbscan
from epicycle.cluster.kmeans import KMeans
from epicycle.cluster.max_margin import MaxMarginClustering
from epicycle.cluster.spectral import SpectralClustering, SpectralEmbedding

__all__ = ["DBSCAN", "KMeans", "MaxMarginClustering", "SpectralClustering", "SpectralEmbedding", "dbscan"]
