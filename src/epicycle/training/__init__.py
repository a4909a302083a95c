"""From a table to a model that can be trusted: :func:`train`, and the parts that it is made of."""

from epicycle.training.encoder import TableEncoder
from epicycle.training.main_job import train
from epicycle.training.parts import Parts, read_parts
from epicycle.training.table_model import TableModel
from epicycle.training.tables import read_table
from epicycle.training.training_run import TrainingRun

__all__ = ["Parts", "TableEncoder", "TableModel", "TrainingRun", "read_parts", "read_table", "train"]
