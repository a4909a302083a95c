"""Few latent variables behind many columns: factor analysis and probabilistic principal components."""

from epicycle.decomposition._factor_analysis import FactorAnalysis
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA

__all__ = ["FactorAnalysis", "ProbabilisticPCA"]
