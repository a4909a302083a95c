"""The base of kernel machines: their kernel, the rows they keep, and the kernel of new rows with those."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Batch
from epicycle.data._dask_data import is_dask
from epicycle.kernels._compositions import Normalized
from epicycle.kernels._given import Entries, FunctionKernel, Precomputed, settled_function
from epicycle.kernels._gram import gram_matrix, kernel_product
from epicycle.kernels._histograms import ChiSquare, HistogramIntersection
from epicycle.kernels._inner_products import Linear, Polynomial, Sigmoid
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._prepared import as_texts
from epicycle.kernels._scikit_learn import (
    SCIKIT_LEARN_NAMES,
    ScikitLearnKernel,
    is_scikit_learn_kernel,
    named_kernel,
)
from epicycle.kernels._stationary import Gaussian, Laplacian
from epicycle.linalg._shifted_systems import least_eigenvalue
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import class_weights, encode_array

#: Kernels by scikit-learn's names, and a few more.
NAMES: tuple[str, ...] = (
    *("linear", "poly", "polynomial", "rbf", "gaussian", "laplacian", "sigmoid", "cosine", "chi2"),
    *("histogram_intersection", "precomputed"),
)

#: The arguments that kernel machines share.
KERNEL_PARAMETERS: Mapping[str, Domain] = {
    "kernel": AnyOf(Choice(*NAMES), InstanceOf(Kernel), Callable()),
    "gamma": NoneOr(Real(minimum=0, inclusive=False)),
    "degree": Real(minimum=0),
    "coef0": Real(),
}


def as_kernel(kernel: Any, gamma: float | None, degree: float, coef0: float, n_columns: int | None) -> Kernel:
    """A kernel from its name, itself, or a Python function f(X, Z) -> matrix.

    `gamma`, `degree` and `coef0` are for names only. gamma=None is 1 / n_columns.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return ScikitLearnKernel(kernel) if is_scikit_learn_kernel(kernel) else FunctionKernel(kernel)
    if kernel in SCIKIT_LEARN_NAMES:
        return named_kernel(kernel)
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


#: Their entries in docstrings, and those of what all kernel machines have in common.
KERNEL_DOCS: Mapping[str, str] = {
    "kernel": """kernel : str, Kernel or callable, default={default}
    "linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2", "histogram_intersection", "precomputed", a
    kernel of :mod:`epicycle.kernel` (strings among them), or a function: f(X, Z) that gives the matrix, or
    f(x, z) of two rows that gives a number.""",
    "gamma": """gamma : float, optional
    Parameter of kernels by name; default: 1 / n_features.""",
    "degree": """degree : int, default={default}
    Degree of the kernel "poly".""",
    "coef0": """coef0 : float, default={default}
    Constant of the kernels "poly" and "sigmoid".""",
    "kernel_params": """kernel_params : dict, optional
    Further arguments of a kernel that is a function.""",
    "kernel_": """kernel_ : Kernel
    The kernel as an object.""",
    "X_fit_": """X_fit_ : array or sparse matrix of shape (n_samples, n_features), or None
    The rows of the fit with a weight; None for a precomputed kernel.""",
    "X": """X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
    For a precomputed kernel its values for these rows and those of the fit.""",
}


_EVIDENCE = ("history_", "certificate_", "n_iter_", "converged_", "fit_seconds_", "n_features_in_", "feature_names_in_")


class KernelMachine(Estimator):
    """An estimator with the arguments `kernel`, `gamma`, `degree`, `coef0` and `n_jobs` that keeps rows of the fit."""

    _docs: ClassVar[Mapping[str, str]] = KERNEL_DOCS

    kernel: Any
    gamma: float | None
    degree: float | None
    coef0: float | None
    n_jobs: int | None
    kernel_: Kernel
    X_fit_: Any

    def _named_kernel(self, data: ArrayData | None) -> Kernel:
        """The argument `kernel` as an object, for the data where there are some."""
        n_columns = None if data is None else data.n_features
        kernel, given = self.kernel, getattr(self, "kernel_params", None)
        if given and callable(kernel) and not isinstance(kernel, Kernel):
            kernel = functools.partial(kernel, **given)
        degree = 3 if self.degree is None else self.degree
        coef0 = 1.0 if self.coef0 is None else self.coef0
        return as_kernel(kernel, self._gamma(data), degree, coef0, n_columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = self._named_kernel(None)
        except (TypeError, ValueError):  # fit reports it by name when it checks the parameters
            return tags
        tags.input_tags.sparse = kernel.accepts_sparse
        tags.input_tags.pairwise = kernel.takes == "precomputed"
        if kernel.takes == "strings":
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _gamma(self, data: ArrayData | None) -> float | None:
        """gamma as a number, from the data where there are some; None for 1 / n_features."""
        return self.gamma

    def _intake(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[ArrayData, Any]:
        """(data with checked targets and weights, rows of the kind that the kernel takes); sets `kernel_`."""
        named = self._named_kernel(None)
        if isinstance(named, FunctionKernel) and not isinstance(self.kernel, Kernel) and _holds_texts(X):
            named = FunctionKernel(named.function, rows="strings")
        rows: Any = None
        table = X
        if named.takes == "strings":
            rows = as_texts(X, "X", type(self).__name__)
            table = np.arange(len(rows), dtype=np.float64)[:, None]
        elif is_dask(X):
            raise DataError(f"X: {type(self).__name__} keeps its rows and needs them in memory; compute() them first")
        data = self._fit_data(table, y, sample_weight, **checks)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} keeps its rows and needs them in memory; collect them first")
        if rows is None:
            rows = data.X
        elif self._has_callbacks():
            self._run.inputs["X"] = X
        self.kernel_ = named if named.takes == "strings" else self._named_kernel(data)
        if self.kernel_.takes == "precomputed" and rows.shape[0] != rows.shape[1]:
            raise DataError(
                f"X: has shape {rows.shape}; kernel='precomputed' expected a square matrix of kernel values"
            )
        if isinstance(self.kernel_, FunctionKernel) and not isinstance(self.kernel, Kernel):
            self.kernel_ = settled_function(self.kernel_, rows)
        return data, rows

    def _weighing_rows(self, data: ArrayData, rows: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """(rows that have a weight, their weights, which rows they are)."""
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(weight):
            rows, weight = select_rows(rows, self.kernel_, kept), weight[kept]
        return rows, weight, kept

    def _keep(self, rows: Any, kept: np.ndarray | None = None) -> None:
        """Keep rows for prediction, as a copy; of a given matrix only which they are among the rows of the fit."""
        if self.kernel_.takes == "precomputed":
            self.X_fit_ = None
            self._n_fit_ = int(rows.shape[0])
            self._columns_ = np.arange(self._n_fit_) if kept is None else kept
        else:
            # Rows that a fit has merged or converted are its own already; those given are copied unless asked not to.
            self.X_fit_ = rows.copy() if getattr(self, "copy_X_train", getattr(self, "copy_X", True)) else rows

    def _learnt_attributes(self) -> dict[str, Any]:
        """The fitted attributes, but for the evidence and the names of the columns."""
        return {k: v for k, v in vars(self).items() if k.endswith("_") and k not in _EVIDENCE}

    def _require(self, n: int, matrices: float) -> None:
        name = type(self).__name__
        instead = "take Nystroem or RandomFourierFeatures with a linear model, which need no matrix of all pairs"
        require_memory(matrices * 8.0 * n * n, f"{name} on {n:,} rows", instead)

    def _gram(self, prepared: Any) -> np.ndarray:
        K = gram_matrix(self.kernel_, prepared, np.dtype(np.float64), self.n_jobs)
        self._require_finite(K)
        return K

    def _require_finite(self, K: np.ndarray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            finite = math.isfinite(float(K.sum())) or bool(np.isfinite(K).all())
        if not finite:
            raise DataError(f"kernel: {self.kernel_!r:.80} gives values that are not finite for X; scale X")

    def _least_eigenvalue(self, K: np.ndarray) -> float:
        """The least eigenvalue of K if it is below zero by more than rounding, otherwise 0."""
        return 0.0 if self.kernel_.mercer else least_eigenvalue(K, self.n_jobs)

    def _require_mercer(self, K: np.ndarray) -> None:
        if (least := self._least_eigenvalue(K)) < 0:
            raise DataError(
                f"kernel: {self.kernel!r:.60} is no Mercer kernel, because its matrix for these rows has the "
                f"eigenvalue {least:.3g}; {type(self).__name__} has no solution for it (is_mercer shows the direction)"
            )

    def _kept(self) -> Any:
        """The rows of the fit, prepared."""
        if self.kernel_.takes == "precomputed":
            return Entries(None, self._columns_)
        return self.kernel_.prepare(self.X_fit_)

    def _combine(self, X: Any, C: np.ndarray, offset: np.ndarray) -> Any:
        """sum_i C_i k(x_i, x) + offset for every row x of X: shape (n, t)."""
        self._check_fitted()
        if self.kernel_.takes == "strings":
            B = self._kept()
            A = self.kernel_.prepare(as_texts(X, "X", type(self).__name__), like=B)
            return kernel_product(self.kernel_, A, B, C) + offset
        data = self._predict_data(X)
        return engine.map(combine_batch, data, self.kernel_, self._kept(), C, offset, n_jobs=self.n_jobs)


class KernelClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc]  # untyped mixin
    """A kernel machine for labels."""

    classes_: np.ndarray

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """(rows that have a weight, codes of their labels, their weights, which rows they are); sets `classes_`."""
        data, rows = self._intake(X, y, sample_weight, target="labels")
        rows, weight, kept = self._weighing_rows(data, rows)
        self.classes_, totals, coded = encode_array(np.asarray(data.y)[kept], weight, type(self).__name__)
        factors = class_weights(getattr(self, "class_weight", None), self.classes_, totals)
        if factors is not None:
            weight = weight * factors[coded]
        return rows, coded, weight, kept

    @abstractmethod
    def _scores(self, X: Any) -> Any:
        """Scores of shape (n, 1) for two classes, (n, n_classes) for more."""

    def decision_function(self, X: Any) -> Any:
        """Scores: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row: on whose side it lies, or for more than two that of the largest score."""
        scores = np.asarray(self._scores(X))
        return choose_class(scores, self.classes_)


def _holds_texts(X: Any) -> bool:
    """Whether X is a sequence or an array of strings, one for each row."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(x, str) for x in X)
    return isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind == "U"


def combine_batch(batch: Batch, kernel: Kernel, B: Any, C: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The same for a batch, in the type of its rows where that holds numbers of this size."""
    A = kernel.prepare(batch.X, like=B)
    with np.errstate(over="ignore", invalid="ignore"):
        found = kernel_product(kernel, A, B, C) + offset
    largest = np.abs(found).max(initial=0.0)
    if not np.isfinite(largest):
        name = type(kernel).__name__
        raise DataError(f"X: sums of values of the {name} kernel are not finite for some rows; scale X")
    return np.asarray(found.astype(batch.X.dtype) if largest <= np.finfo(batch.X.dtype).max else found)


def select_rows(rows: Any, kernel: Kernel, chosen: np.ndarray) -> Any:
    """Some of the rows; of a given matrix the columns too."""
    if kernel.takes == "precomputed":
        return rows[np.ix_(chosen, chosen)]
    return rows[chosen] if not sp.issparse(rows) else rows[chosen].tocsr()
