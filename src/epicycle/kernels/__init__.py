"""Kernel functions k(x, z): their algebra, hyper-parameters, matrices, and the base of the machines that use them."""

from epicycle.kernels._compositions import Constant, Normalized, Power, Product, Scaled, Sum
from epicycle.kernels._given import FunctionKernel, Precomputed
from epicycle.kernels._histograms import ChiSquare, HistogramIntersection
from epicycle.kernels._inner_products import Linear, Polynomial, Sigmoid
from epicycle.kernels._kernel import Hyperparameter, Kernel
from epicycle.kernels._mercer import MercerCheck, is_mercer
from epicycle.kernels._networks import NNGP, ArcCosine, NeuralTangent
from epicycle.kernels._stationary import Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
from epicycle.kernels._strings import Mismatch, Spectrum, Subsequence

__all__ = [
    "NNGP",
    "ArcCosine",
    "ChiSquare",
    "Constant",
    "FunctionKernel",
    "Gaussian",
    "HistogramIntersection",
    "Hyperparameter",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "MercerCheck",
    "Mismatch",
    "NeuralTangent",
    "Normalized",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Spectrum",
    "Subsequence",
    "Sum",
    "is_mercer",
]
