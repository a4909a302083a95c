"""Clusters of high density."""

from epicycle.cluster.density._dbscan import DBSCAN, dbscan
from epicycle.cluster.density._hdbscan import HDBSCAN

__all__ = ["DBSCAN", "HDBSCAN", "dbscan"]
