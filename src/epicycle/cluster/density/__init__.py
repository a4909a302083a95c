"""Clusters of high density."""

from epicycle.cluster.density._cluster_optics import cluster_optics_dbscan, cluster_optics_xi
from epicycle.cluster.density._dbscan import DBSCAN, dbscan
from epicycle.cluster.density._hdbscan import HDBSCAN
from epicycle.cluster.density._optics import OPTICS, compute_optics_graph

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "OPTICS",
    "cluster_optics_dbscan",
    "cluster_optics_xi",
    "compute_optics_graph",
    "dbscan",
]
