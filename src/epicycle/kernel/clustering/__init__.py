"""Clusters that a kernel machine can tell apart."""

from epicycle.kernel.clustering.machine import MaxMarginClustering

__all__ = ["MaxMarginClustering"]
