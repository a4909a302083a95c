"""Hierarchical clustering."""

from epicycle.cluster.hierarchy._agglomerative import AgglomerativeClustering
from epicycle.cluster.hierarchy._feature_agglomeration import FeatureAgglomeration
from epicycle.cluster.hierarchy._tree import linkage_tree, ward_tree

__all__ = ["AgglomerativeClustering", "FeatureAgglomeration", "linkage_tree", "ward_tree"]
