"""Linear support vector machines."""

from epicycle.svm.linear._linear_svc import LinearSVC
from epicycle.svm.linear._linear_svr import LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
