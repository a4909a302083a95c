"""Clustering."""

from epicycle.cluster.density import DBSCAN, HDBSCAN, dbscan
from epicycle.cluster.kmeans import KMeans
from epicycle.cluster.max_margin import MaxMarginClustering

__all__ = ["DBSCAN", "HDBSCAN", "KMeans", "MaxMarginClustering", "dbscan"]
