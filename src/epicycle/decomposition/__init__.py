"""Few latent variables behind many columns: components, principal and independent; factors, parts, topics."""

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
from epicycle.decomposition.ica import ICA, FastICA, fastica
from epicycle.decomposition.nmf import NMF, MiniBatchNMF, non_negative_factorization
from epicycle.decomposition.pca import PCA, TruncatedSVD
from epicycle.decomposition.topics import LatentDirichletAllocation

__all__ = [
    "ICA",
    "NMF",
    "PCA",
    "DictionaryLearning",
    "FactorAnalysis",
    "FastICA",
    "LatentDirichletAllocation",
    "MiniBatchDictionaryLearning",
    "MiniBatchNMF",
    "ProbabilisticPCA",
    "SparseCoder",
    "TruncatedSVD",
    "dict_learning",
    "dict_learning_online",
    "fastica",
    "non_negative_factorization",
    "sparse_encode",
]
