"""Tables in, batches out: arrays, sparse matrices, data frames, files larger than memory, Dask collections."""

from epicycle.data.batch import Batch, Matrix
from epicycle.data.convert import as_data
from epicycle.data.dataset import Data
from epicycle.data.memory import ArrayData

__all__ = ["ArrayData", "Batch", "Data", "Matrix", "as_data"]
