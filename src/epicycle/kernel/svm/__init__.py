"""Support vector machines."""

from epicycle.kernel.svm.c_classification import SVC

__all__ = ["SVC"]
