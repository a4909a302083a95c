"""Texts."""

from epicycle.text.words import GloVe, PairScore, Word2Vec, WordVectors

__all__ = ["GloVe", "PairScore", "Word2Vec", "WordVectors"]
