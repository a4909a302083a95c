"""Clustering."""

from epicycle.cluster.density import DBSCAN, dbscan
from epicycle.cluster.kmeans import BisectingKMeans, KMeans, MiniBatchKMeans
from epicycle.cluster.max_margin import MaxMarginClustering
from epicycle.cluster.medoids import KMedoids

__all__ = ["DBSCAN", "BisectingKMeans", "KMeans", "KMedoids", "MaxMarginClustering", "MiniBatchKMeans", "dbscan"]
