"""Linear support vector machines."""

from epicycle.linear.support_vectors.classification import LinearSVC
from epicycle.linear.support_vectors.regression import LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
