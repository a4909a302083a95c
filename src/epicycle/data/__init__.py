"""Tables in, batches out: arrays, sparse matrices, data frames, files larger than memory, Dask collections."""

from epicycle.data._array_data import ArrayData
from epicycle.data._as_data import as_data
from epicycle.data._dask_data import DaskData
from epicycle.data._data import Batch, Data, Matrix
from epicycle.data._scan import Scan, scan
from epicycle.data._scan_data import ScanData

__all__ = ["ArrayData", "Batch", "DaskData", "Data", "Matrix", "Scan", "ScanData", "as_data", "scan"]
