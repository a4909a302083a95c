"""K-means and its variants."""

from epicycle.cluster.kmeans._kmeans import KMeans
from epicycle.cluster.kmeans._number_of_clusters import Elbow, GapStatistic

__all__ = ["Elbow", "GapStatistic", "KMeans"]
