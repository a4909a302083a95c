"""Support vector machines."""

from epicycle.kernel.svm.c_classification import SVC
from epicycle.kernel.svm.hulls import HullPoints
from epicycle.kernel.svm.novelty import OneClassSVM
from epicycle.kernel.svm.nu_classification import NuSVC
from epicycle.kernel.svm.tube_regression import SVR

__all__ = ["SVC", "SVR", "HullPoints", "NuSVC", "OneClassSVM"]
