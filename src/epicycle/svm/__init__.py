"""Support vector machines."""

from epicycle.svm._hulls import HullPoints
from epicycle.svm._nu_svc import NuSVC
from epicycle.svm._one_class import OneClassSVM
from epicycle.svm._svc import SVC
from epicycle.svm._svr import SVR
from epicycle.svm.linear import LinearSVC, LinearSVR

__all__ = ["SVC", "SVR", "HullPoints", "LinearSVC", "LinearSVR", "NuSVC", "OneClassSVM"]
