"""Automatic clustering of tables: :func:`cluster_table` and what it returns."""

from epicycle.automl.clustering._cluster_table import cluster_table
from epicycle.automl.clustering._clustering_run import ClusteringRun

__all__ = ["ClusteringRun", "cluster_table"]
