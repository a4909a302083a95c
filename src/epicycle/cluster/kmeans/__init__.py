"""K-means and its variants."""

from epicycle.cluster.kmeans._bisecting_kmeans import BisectingKMeans
from epicycle.cluster.kmeans._kmeans import KMeans
from epicycle.cluster.kmeans._mini_batch_kmeans import MiniBatchKMeans
from epicycle.cluster.kmeans._number_of_clusters import Elbow, GapStatistic

__all__ = ["BisectingKMeans", "Elbow", "GapStatistic", "KMeans", "MiniBatchKMeans"]
