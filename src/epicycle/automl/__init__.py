"""Automatic training on tables and clustering of them: :func:`train`, :func:`cluster_table`, and their parts."""

from epicycle.automl._parts import Parts, read_parts
from epicycle.automl._table_encoder import TableEncoder
from epicycle.automl._table_model import TableModel
from epicycle.automl._tables import read_table
from epicycle.automl._train import train
from epicycle.automl._training_run import TrainingRun
from epicycle.automl.clustering import ClusteringRun, cluster_table

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
