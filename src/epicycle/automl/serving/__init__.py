"""A prediction server for one model: the rows it takes, the batches it predicts, its pages and figures."""

from epicycle.automl.serving._app import LOOPBACK, Limits, PredictionApp

__all__ = ["LOOPBACK", "Limits", "PredictionApp"]
