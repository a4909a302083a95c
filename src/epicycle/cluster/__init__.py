"""Clustering."""

from epicycle.cluster.density import (
    DBSCAN,
    HDBSCAN,
    OPTICS,
    cluster_optics_dbscan,
    cluster_optics_xi,
    compute_optics_graph,
    dbscan,
)
from epicycle.cluster.kmeans import BisectingKMeans, KMeans, MiniBatchKMeans
from epicycle.cluster.max_margin import MaxMarginClustering

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "OPTICS",
    "BisectingKMeans",
    "KMeans",
    "MaxMarginClustering",
    "MiniBatchKMeans",
    "cluster_optics_dbscan",
    "cluster_optics_xi",
    "compute_optics_graph",
    "dbscan",
]
