"""Clusters that a kernel machine can tell apart."""

from epicycle.cluster.max_margin._max_margin_clustering import MaxMarginClustering

__all__ = ["MaxMarginClustering"]
