"""Principal components and truncated singular value decompositions."""

from epicycle.decomposition.pca._pca import PCA
from epicycle.decomposition.pca._truncated_svd import TruncatedSVD

__all__ = ["PCA", "TruncatedSVD"]
