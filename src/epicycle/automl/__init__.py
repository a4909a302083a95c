"""Automatic training on tables for one target or several; clusters, effects, recommendations, anomalies, topics.

:func:`train`, :func:`train_targets`, :func:`cluster_table`, :func:`effect_table`, :func:`recommend_table`,
:func:`anomaly_table`, :func:`topic_table`, and synthetic rows by :func:`generate_table`.
"""

from epicycle.automl._parts import Parts, read_parts
from epicycle.automl._train import train
from epicycle.automl._training_run import TrainingRun
from epicycle.automl.anomalies import AnomalyRun, anomaly_table
from epicycle.automl.clustering import ClusteringRun, cluster_table
from epicycle.automl.effects import EffectRun, effect_table
from epicycle.automl.ensembles import EnsembleTableModel
from epicycle.automl.images._pixel_net import PixelNetClassifier
from epicycle.automl.multioutput import MultiOutputRun, MultiOutputTableModel, train_targets
from epicycle.automl.recommendations import RecommendationRun, recommend_table
from epicycle.automl.synthesis import GenerationRun, TableGenerator, generate_table
from epicycle.automl.tables import TableEncoder, TableModel, read_table
from epicycle.automl.topics import TopicRun, topic_table

__all__ = [
    "AnomalyRun",
    "ClusteringRun",
    "EffectRun",
    "EnsembleTableModel",
    "GenerationRun",
    "MultiOutputRun",
    "MultiOutputTableModel",
    "Parts",
    "PixelNetClassifier",
    "RecommendationRun",
    "TableEncoder",
    "TableGenerator",
    "TableModel",
    "TopicRun",
    "TrainingRun",
    "anomaly_table",
    "cluster_table",
    "effect_table",
    "generate_table",
    "read_parts",
    "read_table",
    "recommend_table",
    "topic_table",
    "train",
    "train_targets",
]
