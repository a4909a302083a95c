"""Automatic training on tables: :func:`train` and the parts that it is made of."""

from epicycle.automl._parts import Parts, read_parts
from epicycle.automl._table_encoder import TableEncoder
from epicycle.automl._table_model import TableModel
from epicycle.automl._tables import read_table
from epicycle.automl._train import train
from epicycle.automl._training_run import TrainingRun

__all__ = ["Parts", "TableEncoder", "TableModel", "TrainingRun", "read_parts", "read_table", "train"]
