"""Hierarchical clustering."""

from epicycle.cluster.hierarchy._agglomerative import AgglomerativeClustering
from epicycle.cluster.hierarchy._tree import linkage_tree, ward_tree

__all__ = ["AgglomerativeClustering", "linkage_tree", "ward_tree"]
