"""Clustering."""

from epicycle.cluster.density import DBSCAN, HDBSCAN, dbscan
from epicycle.cluster.kmeans import BisectingKMeans, KMeans, MiniBatchKMeans
from epicycle.cluster.max_margin import MaxMarginClustering

__all__ = ["DBSCAN", "HDBSCAN", "BisectingKMeans", "KMeans", "MaxMarginClustering", "MiniBatchKMeans", "dbscan"]
