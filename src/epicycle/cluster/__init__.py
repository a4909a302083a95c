"""Clustering."""

from epicycle.cluster.hierarchy import AgglomerativeClustering, linkage_tree, ward_tree
from epicycle.cluster.kmeans import KMeans
from epicycle.cluster.max_margin import MaxMarginClustering

__all__ = ["AgglomerativeClustering", "KMeans", "MaxMarginClustering", "linkage_tree", "ward_tree"]
