"""Multi-layer perceptrons."""

from epicycle.nets.mlp._mlp import MLPClassifier, MLPRegressor

__all__ = ["MLPClassifier", "MLPRegressor"]
