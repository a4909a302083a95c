"""Kernels, and machines made of them."""

from epicycle.kernel.approximate_features import Nystroem, RandomFourierFeatures
from epicycle.kernel.clustering import MaxMarginClustering
from epicycle.kernel.compositions import Constant, Normalized, Power, Product, Scaled, Sum
from epicycle.kernel.given import FunctionKernel, Precomputed
from epicycle.kernel.gp import GaussianProcessClassifier, GaussianProcessRegressor
from epicycle.kernel.histograms import ChiSquare, HistogramIntersection
from epicycle.kernel.hyperparameters import Hyperparameter
from epicycle.kernel.inner_products import Linear, Polynomial, Sigmoid
from epicycle.kernel.kernels_base import Kernel
from epicycle.kernel.logistic_regression import KernelLogisticRegression
from epicycle.kernel.mercer import MercerCheck, is_mercer
from epicycle.kernel.neighbours import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from epicycle.kernel.networks import NNGP, ArcCosine, NeuralTangent
from epicycle.kernel.perceptron_machine import KernelPerceptron
from epicycle.kernel.principal_components import KernelPCA
from epicycle.kernel.ridge_regression import KernelRidge
from epicycle.kernel.stationary import Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
from epicycle.kernel.strings import Mismatch, Spectrum, Subsequence
from epicycle.kernel.svm import SVC, SVR, HullPoints, NuSVC, OneClassSVM

__all__ = [
    "NNGP",
    "SVC",
    "SVR",
    "ArcCosine",
    "ChiSquare",
    "Constant",
    "FunctionKernel",
    "Gaussian",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "HistogramIntersection",
    "HullPoints",
    "Hyperparameter",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "Kernel",
    "KernelLogisticRegression",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRidge",
    "Laplacian",
    "Linear",
    "Matern",
    "MaxMarginClustering",
    "MercerCheck",
    "Mismatch",
    "NearestNeighbors",
    "NeuralTangent",
    "Normalized",
    "NuSVC",
    "Nystroem",
    "OneClassSVM",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RandomFourierFeatures",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Spectrum",
    "Subsequence",
    "Sum",
    "is_mercer",
]
