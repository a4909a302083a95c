"""Tables in, batches out: arrays, sparse matrices, data frames, files larger than memory, Dask collections."""

from epicycle.data.batch import Batch, Matrix
from epicycle.data.convert import as_data
from epicycle.data.dataset import Data
from epicycle.data.files import Scan, scan
from epicycle.data.memory import ArrayData
from epicycle.data.partitions import DaskData
from epicycle.data.scanned import ScanData

__all__ = ["ArrayData", "Batch", "DaskData", "Data", "Matrix", "Scan", "ScanData", "as_data", "scan"]
