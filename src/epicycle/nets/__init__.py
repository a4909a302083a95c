"""Neural networks on PyTorch (the extra `deep`)."""

from epicycle.nets.mlp import MLPClassifier, MLPRegressor
from epicycle.nets.vision import ConvNetClassifier

__all__ = ["ConvNetClassifier", "MLPClassifier", "MLPRegressor"]
