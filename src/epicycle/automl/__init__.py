"""Automatic training on tables and clustering of them: :func:`train`, :func:`cluster_table`, and their parts."""

from epicycle.automl._parts import Parts, read_parts
from epicycle.automl._train import train
from epicycle.automl._training_run import TrainingRun
from epicycle.automl.clustering import ClusteringRun, cluster_table
from epicycle.automl.tables import TableEncoder, TableModel, read_table

__all__ = [
    "ClusteringRun",
    "Parts",
    "TableEncoder",
    "TableModel",
    "TrainingRun",
    "cluster_table",
    "read_parts",
    "read_table",
    "train",
]
