"""Passes over data: `sum` and `map` over the batches of a data set, in memory, from files, on a cluster."""

from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.engine._dask import row_starts
from epicycle.engine._passes import map, sum
from epicycle.engine._states import States, make_states

__all__ = ["States", "make_states", "map", "n_threads", "row_starts", "single_threaded_blas", "sum"]
