"""Few latent variables behind many columns: principal components, singular vectors, factor analysis."""

from epicycle.decomposition._factor_analysis import FactorAnalysis
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA
from epicycle.decomposition.pca import PCA, TruncatedSVD

__all__ = ["PCA", "FactorAnalysis", "ProbabilisticPCA", "TruncatedSVD"]
