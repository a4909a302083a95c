"""Vectors of words, learnt from texts."""

from epicycle.text.words._glove import GloVe
from epicycle.text.words._word2vec import Word2Vec
from epicycle.text.words._word_vectors import WordVectors

__all__ = ["GloVe", "Word2Vec", "WordVectors"]
