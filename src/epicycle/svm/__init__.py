"""Support vector machines."""

from epicycle.svm._nu_svc import NuSVC
from epicycle.svm._nu_svr import NuSVR
from epicycle.svm._one_class import OneClassSVM
from epicycle.svm._svc import SVC, HullPoints
from epicycle.svm._svr import SVR
from epicycle.svm.linear._l1_min_c import l1_min_c
from epicycle.svm.linear._linear_svc import LinearSVC
from epicycle.svm.linear._linear_svr import LinearSVR

__all__ = ["SVC", "SVR", "HullPoints", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "l1_min_c"]
