"""Clustering."""

from epicycle.cluster.density import DBSCAN, HDBSCAN, dbscan
from epicycle.cluster.hierarchy import AgglomerativeClustering, linkage_tree, ward_tree
from epicycle.cluster.kmeans import BisectingKMeans, KMeans, MiniBatchKMeans
from epicycle.cluster.max_margin import MaxMarginClustering
from epicycle.cluster.medoids import KMedoids
from epicycle.cluster.prototypes import KMedians, KModes, KPrototypes
from epicycle.cluster.spectral import SpectralClustering, SpectralEmbedding

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "AgglomerativeClustering",
    "BisectingKMeans",
    "KMeans",
    "KMedians",
    "KMedoids",
    "KModes",
    "KPrototypes",
    "MaxMarginClustering",
    "MiniBatchKMeans",
    "SpectralClustering",
    "SpectralEmbedding",
    "dbscan",
    "linkage_tree",
    "ward_tree",
]
