"""Where the passes run: `sum` and `map` over the batches of a data set, in memory, from files, on a cluster."""

from epicycle._threads import n_threads, single_threaded_blas
from epicycle.engine.passes import map, sum

__all__ = ["map", "n_threads", "single_threaded_blas", "sum"]
