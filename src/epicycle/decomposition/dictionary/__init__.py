"""Sparse codes over dictionaries, given or learnt."""

from epicycle.decomposition.dictionary._dict_learning import dict_learning
from epicycle.decomposition.dictionary._dictionary_learning import DictionaryLearning
from epicycle.decomposition.dictionary._sparse_coder import SparseCoder
from epicycle.decomposition.dictionary._sparse_encode import sparse_encode

__all__ = ["DictionaryLearning", "SparseCoder", "dict_learning", "sparse_encode"]
