"""Clustering."""

from epicycle.cluster.kmeans import KMeans
from epicycle.cluster.max_margin import MaxMarginClustering

__all__ = ["KMeans", "MaxMarginClustering"]
