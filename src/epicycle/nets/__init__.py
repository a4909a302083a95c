"""Neural networks on PyTorch (the extra `deep`)."""

from epicycle.nets.mlp import MLPClassifier, MLPRegressor

__all__ = ["MLPClassifier", "MLPRegressor"]
