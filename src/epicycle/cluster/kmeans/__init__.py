"""K-means and its variants."""

from epicycle.cluster.kmeans._kmeans import KMeans

__all__ = ["KMeans"]
