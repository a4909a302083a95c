"""Clusters around rows of the table."""

from epicycle.cluster.medoids._kmedoids import KMedoids

__all__ = ["KMedoids"]
