"""Kernels by scikit-learn's names, with its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.kernels._compositions import Normalized
from epicycle.kernels._given import FunctionKernel, Precomputed
from epicycle.kernels._histograms import ChiSquare, HistogramIntersection
from epicycle.kernels._inner_products import Linear, Polynomial, Sigmoid
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._stationary import Gaussian, Laplacian

__all__ = ["KERNEL_PARAMETERS", "NAMES", "as_kernel"]

NAMES = (
    "linear", "poly", "polynomial", "rbf", "gaussian", "laplacian", "sigmoid", "cosine", "chi2",
    "histogram_intersection", "precomputed",
)  # fmt: skip

#: The arguments that kernel machines share.
KERNEL_PARAMETERS: Mapping[str, Domain] = {
    "kernel": AnyOf(Choice(*NAMES), InstanceOf(Kernel), Callable()),
    "gamma": NoneOr(Real(minimum=0, inclusive=False)),
    "degree": Integer(minimum=1),
    "coef0": Real(),
}


def as_kernel(kernel: Any, gamma: float | None, degree: int, coef0: float, n_columns: int | None) -> Kernel:
    """A kernel from its name, itself, or a Python function f(X, Z) -> matrix.

    `gamma`, `degree` and `coef0` are for names only. gamma=None is 1 / n_columns.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return FunctionKernel(kernel)
    if gamma is None:
        gamma = 1.0 if kernel == "chi2" or not n_columns else 1.0 / n_columns
    if kernel in ("rbf", "gaussian"):
        return Gaussian(float((2 * gamma) ** -0.5))
    if kernel == "laplacian":
        return Laplacian(1 / gamma)
    if kernel in ("poly", "polynomial"):
        return Polynomial(degree, gamma=gamma, c=coef0)
    if kernel == "sigmoid":
        return Sigmoid(gamma=gamma, c=coef0)
    if kernel == "chi2":
        return ChiSquare(gamma)
    simple = {"linear": Linear(), "cosine": Normalized(Linear()), "histogram_intersection": HistogramIntersection()}
    return simple.get(kernel, Precomputed())
