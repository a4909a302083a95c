"""The users' regressor beside the tests of model files stands for its kind."""

from mean_regressor import MeanRegressor

from epicycle.io import register

register(MeanRegressor, "tests.MeanRegressor")
