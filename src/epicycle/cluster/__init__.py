"""Clustering."""

from epicycle.cluster.max_margin import MaxMarginClustering

__all__ = ["MaxMarginClustering"]
