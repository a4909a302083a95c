"""Neural networks on PyTorch (the extra `deep`)."""

from epicycle.nets.mlp import MLPClassifier, MLPRegressor
from epicycle.nets.sequences import CharacterModel, SequenceClassifier, SequenceRegressor, SequenceTagger
from epicycle.nets.vision import ConvNetClassifier

__all__ = [
    "CharacterModel",
    "ConvNetClassifier",
    "MLPClassifier",
    "MLPRegressor",
    "SequenceClassifier",
    "SequenceRegressor",
    "SequenceTagger",
]
