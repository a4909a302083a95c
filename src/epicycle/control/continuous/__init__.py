"""Planning with continuous states: grids, and values fitted by regressors."""

from epicycle.control.continuous._discretize import discretize
from epicycle.control.continuous._fitted_q_iteration import FittedQIteration
from epicycle.control.continuous._fitted_value_iteration import FittedValueIteration
from epicycle.control.continuous._grid_solution import GridSolution

__all__ = ["FittedQIteration", "FittedValueIteration", "GridSolution", "discretize"]
