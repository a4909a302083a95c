"""Few latent variables behind many columns: principal and independent components, singular vectors, factor analysis."""

from epicycle.decomposition._factor_analysis import FactorAnalysis
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA
from epicycle.decomposition.ica import ICA, FastICA, fastica
from epicycle.decomposition.pca import PCA, TruncatedSVD

__all__ = ["ICA", "PCA", "FactorAnalysis", "FastICA", "ProbabilisticPCA", "TruncatedSVD", "fastica"]
