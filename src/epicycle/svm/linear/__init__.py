"""Linear support vector machines."""

from epicycle.svm.linear._l1_min_c import l1_min_c
from epicycle.svm.linear._linear_svc import LinearSVC
from epicycle.svm.linear._linear_svr import LinearSVR

__all__ = ["LinearSVC", "LinearSVR", "l1_min_c"]
