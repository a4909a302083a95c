"""The helpers beside the tests of model files can be imported by them, and the users' regressor stands for its kind."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mean_regressor import MeanRegressor

from epicycle.io import register

register(MeanRegressor, "tests.MeanRegressor")
