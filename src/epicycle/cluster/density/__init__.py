"""Clusters of high density."""

from epicycle.cluster.density._dbscan import DBSCAN, dbscan

__all__ = ["DBSCAN", "dbscan"]
