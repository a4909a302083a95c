"""Few latent variables behind many columns: principal components, singular vectors, factors, parts."""

from epicycle.decomposition._factor_analysis import FactorAnalysis
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA
from epicycle.decomposition.dictionary import (
    DictionaryLearning,
    MiniBatchDictionaryLearning,
    SparseCoder,
    dict_learning,
    dict_learning_online,
    sparse_encode,
)
from epicycle.decomposition.nmf import NMF, MiniBatchNMF, non_negative_factorization
from epicycle.decomposition.pca import PCA, TruncatedSVD

__all__ = [
    "NMF",
    "PCA",
    "DictionaryLearning",
    "FactorAnalysis",
    "MiniBatchDictionaryLearning",
    "MiniBatchNMF",
    "ProbabilisticPCA",
    "SparseCoder",
    "TruncatedSVD",
    "dict_learning",
    "dict_learning_online",
    "non_negative_factorization",
    "sparse_encode",
]
