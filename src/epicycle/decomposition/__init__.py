"""Few latent variables behind many columns: principal components, singular vectors, factors, parts."""

from epicycle.decomposition._factor_analysis import FactorAnalysis
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA
from epicycle.decomposition.nmf import NMF, MiniBatchNMF, non_negative_factorization
from epicycle.decomposition.pca import PCA, TruncatedSVD

__all__ = [
    "NMF",
    "PCA",
    "FactorAnalysis",
    "MiniBatchNMF",
    "ProbabilisticPCA",
    "TruncatedSVD",
    "non_negative_factorization",
]
