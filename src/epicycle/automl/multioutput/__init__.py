"""Training for several targets of the same rows: :func:`train_targets`."""

from epicycle.automl.multioutput._multi_output_run import MultiOutputRun
from epicycle.automl.multioutput._multi_output_table_model import MultiOutputTableModel
from epicycle.automl.multioutput._train_targets import train_targets

__all__ = ["MultiOutputRun", "MultiOutputTableModel", "train_targets"]
