"""Few latent variables behind many columns: principal components, singular vectors, factors, parts."""

from epicycle.decomposition._factor_analysis import FactorAnalysis
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA
from epicycle.decomposition.dictionary import DictionaryLearning, SparseCoder, dict_learning, sparse_encode
from epicycle.decomposition.nmf import NMF, MiniBatchNMF, non_negative_factorization
from epicycle.decomposition.pca import PCA, TruncatedSVD

__all__ = [
    "NMF",
    "PCA",
    "DictionaryLearning",
    "FactorAnalysis",
    "MiniBatchNMF",
    "ProbabilisticPCA",
    "SparseCoder",
    "TruncatedSVD",
    "dict_learning",
    "non_negative_factorization",
    "sparse_encode",
]
