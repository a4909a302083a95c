"""Texts."""

from epicycle.text.words import GloVe, Word2Vec, WordVectors

__all__ = ["GloVe", "Word2Vec", "WordVectors"]
