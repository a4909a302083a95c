"""Sparse codes over dictionaries, given or learnt."""

from epicycle.decomposition.dictionary._dict_learning import dict_learning
from epicycle.decomposition.dictionary._dict_learning_online import dict_learning_online
from epicycle.decomposition.dictionary._dictionary_learning import DictionaryLearning
from epicycle.decomposition.dictionary._mini_batch_dictionary_learning import MiniBatchDictionaryLearning
from epicycle.decomposition.dictionary._sparse_coder import SparseCoder
from epicycle.decomposition.dictionary._sparse_encode import sparse_encode

__all__ = [
    "DictionaryLearning",
    "MiniBatchDictionaryLearning",
    "SparseCoder",
    "dict_learning",
    "dict_learning_online",
    "sparse_encode",
]
