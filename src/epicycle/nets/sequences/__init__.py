"""Recurrent networks: classes and numbers of sequences and of their steps, and models of text."""

from epicycle.nets.sequences._character_model import CharacterModel
from epicycle.nets.sequences._sequence_classifier import SequenceClassifier
from epicycle.nets.sequences._sequence_regressor import SequenceRegressor
from epicycle.nets.sequences._sequence_tagger import SequenceTagger

__all__ = ["CharacterModel", "SequenceClassifier", "SequenceRegressor", "SequenceTagger"]
