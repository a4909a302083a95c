"""Tables of the training command: sources, kinds of columns, and models with an encoder of columns before them."""

from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._table_model import TableModel
from epicycle.automl.tables._tables import read_table

__all__ = ["TableEncoder", "TableModel", "read_table"]
