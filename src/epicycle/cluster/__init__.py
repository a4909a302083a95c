"""Clustering."""

from epicycle.cluster.density import (
    DBSCAN,
    HDBSCAN,
    OPTICS,
    cluster_optics_dbscan,
    cluster_optics_xi,
    compute_optics_graph,
    dbscan,
)
from epicycle.cluster.hierarchy import AgglomerativeClustering, FeatureAgglomeration, linkage_tree, ward_tree
from epicycle.cluster.kmeans import BisectingKMeans, KMeans, MiniBatchKMeans
from epicycle.cluster.max_margin import MaxMarginClustering
from epicycle.cluster.medoids import KMedoids
from epicycle.cluster.prototypes import KMedians, KModes, KPrototypes
from epicycle.cluster.spectral import SpectralClustering, SpectralEmbedding

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "OPTICS",
    "AgglomerativeClustering",
    "BisectingKMeans",
    "FeatureAgglomeration",
    "KMeans",
    "KMedians",
    "KMedoids",
    "KModes",
    "KPrototypes",
    "MaxMarginClustering",
    "MiniBatchKMeans",
    "SpectralClustering",
    "SpectralEmbedding",
    "cluster_optics_dbscan",
    "cluster_optics_xi",
    "compute_optics_graph",
    "dbscan",
    "linkage_tree",
    "ward_tree",
]
