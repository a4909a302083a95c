"""Independent components: fixed points of a contrast, and maximum likelihood."""

from epicycle.decomposition.ica._fastica import FastICA, fastica
from epicycle.decomposition.ica._ica import ICA

__all__ = ["ICA", "FastICA", "fastica"]
