"""Kernel methods (ridge, logistic, perceptron, principal components, approximate features) and kernel functions."""

from importlib import import_module
from typing import Any

from epicycle import kernels
from epicycle.kernel._approximation import Nystroem, RandomFourierFeatures
from epicycle.kernel._kernel_logistic_regression import KernelLogisticRegression
from epicycle.kernel._kernel_pca import KernelPCA
from epicycle.kernel._kernel_perceptron import KernelPerceptron
from epicycle.kernel._kernel_ridge import KernelRidge
from epicycle.kernels import *  # noqa: F403 - kernel functions are public here too

__all__ = [
    "KernelLogisticRegression",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRidge",
    "Nystroem",
    "RandomFourierFeatures",
]
__all__ += kernels.__all__

#: Names that 0.1.0 had here, and the packages that they are in now.
_MOVED = {
    "SVC": "svm",
    "SVR": "svm",
    "HullPoints": "svm",
    "NuSVC": "svm",
    "OneClassSVM": "svm",
    "GaussianProcessClassifier": "gp",
    "GaussianProcessRegressor": "gp",
    "KNeighborsClassifier": "neighbors",
    "KNeighborsRegressor": "neighbors",
    "NearestNeighbors": "neighbors",
    "MaxMarginClustering": "cluster",
}


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        return getattr(import_module(f"epicycle.{_MOVED[name]}"), name)
    raise AttributeError(f"module 'epicycle.kernel' has no attribute {name!r}")
