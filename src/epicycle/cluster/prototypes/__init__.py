"""Clusters around prototypes that are no means: medians, modes, and means beside modes."""

from epicycle.cluster.prototypes._kmedians import KMedians
from epicycle.cluster.prototypes._kmodes import KModes
from epicycle.cluster.prototypes._kprototypes import KPrototypes

__all__ = ["KMedians", "KModes", "KPrototypes"]
